// Multilayer perceptrons: dense layers with an activation between them and softmax cross-entropy.
//
// two_nn is the "2NN" of H. B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017:
// two hidden layers of 200 units with ReLU, 199,210 parameters on 28x28 images of 10 classes.
#include "clients/nn/neural_model.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct MlpOptions {
  std::vector<std::int64_t> hidden{200};
  std::string activation = "relu";
  double dropout = 0;
};
inline void describe(Schema& s, MlpOptions& o) {
  s.field("hidden", o.hidden, "units of the hidden layers; none = softmax regression").at_least(1).at_most(1 << 24);
  s.field("activation", o.activation, "after each hidden layer: relu, tanh, gelu");
  s.field("dropout", o.dropout, "rate of dropout after each activation; 0 = none").at_least(0).below(1);
}
inline std::vector<std::string> layers_of(const MlpOptions& o) {
  std::vector<std::string> layers;
  for (const std::int64_t units : o.hidden) {
    layers.push_back("dense(" + std::to_string(units) + ")");
    layers.push_back(o.activation);
    if (o.dropout > 0) layers.push_back("dropout(" + to_string(Value{o.dropout}) + ")");
  }
  layers.push_back("dense(classes)");
  return layers;
}
inline void validate(const MlpOptions& o, Problems& problems) {
  nn::check_choice_of_layer("activation", o.activation, {"relu", "tanh", "gelu"}, problems);
  if (problems.empty()) nn::check_layers("hidden", layers_of(o), problems);
}

template <class T>
class Mlp final : public nn::NeuralModel<T> {
 public:
  explicit Mlp(const MlpOptions& o) : nn::NeuralModel<T>(layers_of(o), nn::Loss::softmax_cross_entropy) {}
};

template <class T>
class TwoNn final : public nn::NeuralModel<T> {
 public:
  explicit TwoNn(const NoOptions&) : nn::NeuralModel<T>(layers_of(MlpOptions{.hidden = {200, 200}}), nn::Loss::softmax_cross_entropy) {}
};

FL_REGISTER_PART(Model, Mlp, MlpOptions, (PartInfo{"model", "mlp", "multilayer perceptron with softmax cross-entropy", ""}));
FL_REGISTER_PART(Model, TwoNn, NoOptions,
                 (PartInfo{"model", "2nn_mcmahan", "784-200-200-10 perceptron with ReLU, 199,210 parameters",
                           "McMahan et al., AISTATS 2017"}));

}  // namespace fl
