// ResNet-18 for small images: a 3x3 convolution of `width` channels, four stages of two residual blocks with width, 2, 4 and 8 times as
// many channels, each stage but the first halving the image, then the mean over the image and one unit per class. With width 64 and batch
// normalisation 11,173,962 weights on 3x32x32 images of 10 classes (and 9,600 running statistics).
//
// K. He, X. Zhang, S. Ren and J. Sun, "Deep residual learning for image recognition", CVPR 2016, with the stem that is usual for CIFAR.
// Group normalisation is the default, because minibatch statistics differ from client to client: K. Hsieh et al., "The non-IID data
// quagmire of decentralized machine learning", ICML 2020.
#include "clients/nn/neural_model.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

enum class Norm { group, batch };

struct ResNet18Options {
  Norm norm = Norm::group;
  std::int64_t groups = 2, width = 64;
};
inline void describe(Schema& s, ResNet18Options& o) {
  s.choice("norm", o.norm, {{Norm::group, "group"}, {Norm::batch, "batch"}}, "normalisation after each convolution");
  s.field("groups", o.groups, "groups of the group normalisation").at_least(1).at_most(4096);
  s.field("width", o.width, "channels of the first stage").at_least(1).at_most(4096);
}
inline void validate(const ResNet18Options& o, Problems& problems) {
  if (o.norm == Norm::group && o.width % o.groups != 0) problems.push_back({"groups", "must divide width = " + std::to_string(o.width)});
}

inline std::vector<std::string> layers_of(const ResNet18Options& o) {
  const std::string norm = o.norm == Norm::batch ? "batch_norm" : "group_norm(" + std::to_string(o.groups) + ")";
  const auto conv = [](std::int64_t channels, int kernel, int stride) {
    return "conv2d(" + std::to_string(channels) + ", " + std::to_string(kernel) + ", padding=" + std::to_string(kernel / 2) +
           ", stride=" + std::to_string(stride) + ", bias=false)";
  };
  std::vector<std::string> layers{conv(o.width, 3, 1), norm, "relu"};
  for (int stage = 0; stage < 4; ++stage)
    for (int block = 0; block < 2; ++block) {
      const std::int64_t channels = o.width << stage;
      const int stride = stage > 0 && block == 0 ? 2 : 1;
      std::string text = "residual([" + conv(channels, 3, stride) + ", " + norm + ", relu, " + conv(channels, 3, 1) + ", " + norm + "]";
      if (stride == 2) text += ", shortcut=[" + conv(channels, 1, 2) + ", " + norm + "]";
      layers.push_back(text + ")");
      layers.emplace_back("relu");
    }
  layers.insert(layers.end(), {"mean_pool(0)", "dense(classes)"});
  return layers;
}

template <class T>
class ResNet18 final : public nn::NeuralModel<T> {
 public:
  explicit ResNet18(const ResNet18Options& o) : nn::NeuralModel<T>(layers_of(o), nn::Loss::softmax_cross_entropy) {}
};

FL_REGISTER_PART(Model, ResNet18, ResNet18Options,
                 (PartInfo{"model", "resnet18", "ResNet-18 for small images, group or batch normalisation", "He et al., CVPR 2016"}));

}  // namespace fl
