// Neural networks by their layers: `layers = ["conv2d(32, 5)", "relu", "max_pool(2)", "dense(classes)"]`, and the loss of what comes out.
#include "clients/nn/neural_model.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct NeuralNetworkOptions {
  std::vector<std::string> layers;
  nn::Loss loss = nn::Loss::softmax_cross_entropy;
};
inline void describe(Schema& s, NeuralNetworkOptions& o) {
  s.field("layers", o.layers,
          "layers in order, as `fedbits list layers` shows them: \"conv2d(32, 5, padding=2)\", \"relu\", \"dense(classes)\"")
      .required();
  s.choice("loss", o.loss,
           {{nn::Loss::softmax_cross_entropy, "softmax_cross_entropy"},
            {nn::Loss::squared_error, "squared_error"},
            {nn::Loss::logistic, "logistic"}},
           "loss of the last layer's outputs against the label, or the target");
}
inline void validate(const NeuralNetworkOptions& o, Problems& problems) {
  if (o.layers.empty()) problems.push_back({"layers", "must name at least one layer"});
  nn::check_layers("layers", o.layers, problems);
}

template <class T>
class NeuralNetwork final : public nn::NeuralModel<T> {
 public:
  explicit NeuralNetwork(const NeuralNetworkOptions& o) : nn::NeuralModel<T>(o.layers, o.loss, "layers") {}
};

FL_REGISTER_PART(Model, NeuralNetwork, NeuralNetworkOptions, (PartInfo{"model", "neural_network", "layers one after another", ""}));

}  // namespace fl
