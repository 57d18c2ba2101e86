// Convolutional networks that federated studies compare on, with softmax cross-entropy.
//
// lenet5: two convolutions of 5x5 (6 and 16 channels; the first keeps the size of 28x28 images), each with activation and 2x2 pooling, then
// 120, 84 and one unit per class; 61,706 parameters on 28x28 images of 10 classes. Y. LeCun, L. Bottou, Y. Bengio and P. Haffner,
// "Gradient-based learning applied to document recognition", Proc. IEEE 86, 1998, with ReLU and the largest entry of a window unless told
// otherwise.
// cnn_mcmahan: convolutions of 5x5 with 32 and 64 channels that keep the size, each with ReLU and 2x2 max pooling, then 512 units with
// ReLU; 1,663,370 parameters on 28x28 images of 10 classes. H. B. McMahan et al., AISTATS 2017. cnn_cifar: convolutions of 5x5 with 6 and
// 16 channels without padding, ReLU and 2x2 max pooling, then 120 and 84 units; 62,006 parameters on 3x32x32 images of 10 classes. Q. Li et
// al., "Federated learning on non-IID data silos: an experimental study", ICDE 2022.
#include "clients/nn/neural_model.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct LeNet5Options {
  std::string activation = "relu", pooling = "max_pool";
};
inline void describe(Schema& s, LeNet5Options& o) {
  s.field("activation", o.activation, "relu, tanh, gelu");
  s.field("pooling", o.pooling, "max_pool or mean_pool");
}
inline std::vector<std::string> layers_of(const LeNet5Options& o) {
  return {"conv2d(6, 5, padding=2)", o.activation, o.pooling + "(2)", "conv2d(16, 5)", o.activation,
          o.pooling + "(2)",         "dense(120)", o.activation,      "dense(84)",     o.activation,
          "dense(classes)"};
}
inline void validate(const LeNet5Options& o, Problems& problems) {
  nn::check_choice_of_layer("activation", o.activation, {"relu", "tanh", "gelu"}, problems);
  nn::check_choice_of_layer("pooling", o.pooling, {"max_pool", "mean_pool"}, problems);
}

constexpr auto kLoss = nn::Loss::softmax_cross_entropy;

template <class T>
class LeNet5 final : public nn::NeuralModel<T> {
 public:
  explicit LeNet5(const LeNet5Options& o) : nn::NeuralModel<T>(layers_of(o), kLoss) {}
};

template <class T>
class McMahanCnn final : public nn::NeuralModel<T> {
 public:
  explicit McMahanCnn(const NoOptions&)
      : nn::NeuralModel<T>({"conv2d(32, 5, padding=2)", "relu", "max_pool(2)", "conv2d(64, 5, padding=2)", "relu", "max_pool(2)",
                            "dense(512)", "relu", "dense(classes)"},
                           kLoss) {}
};

template <class T>
class CifarCnn final : public nn::NeuralModel<T> {
 public:
  explicit CifarCnn(const NoOptions&)
      : nn::NeuralModel<T>({"conv2d(6, 5)", "relu", "max_pool(2)", "conv2d(16, 5)", "relu", "max_pool(2)", "dense(120)", "relu",
                            "dense(84)", "relu", "dense(classes)"},
                           kLoss) {}
};

FL_REGISTER_PART(Model, LeNet5, LeNet5Options,
                 (PartInfo{"model", "lenet5", "LeNet-5; 61,706 parameters on 28x28 images", "LeCun et al., Proc. IEEE 1998"}));
FL_REGISTER_PART(Model, McMahanCnn, NoOptions,
                 (PartInfo{"model", "cnn_mcmahan",
                           "5x5 convolutions of 32 and 64 channels, 512 units; 1,663,370 parameters on 28x28 images",
                           "McMahan et al., AISTATS 2017"}));
FL_REGISTER_PART(Model, CifarCnn, NoOptions,
                 (PartInfo{"model", "cnn_cifar",
                           "5x5 convolutions of 6 and 16 channels, 120 and 84 units; 62,006 parameters on 3x32x32 images",
                           "Li et al., ICDE 2022"}));

}  // namespace fl
