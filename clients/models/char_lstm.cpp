// Next character of a text by two LSTM layers: embedding of 8, two layers of 256 units, the last state to one score per character; every
// position's state where the data is labelled at every position.
//
// 820,522 parameters with a vocabulary of 90, as in S. J. Reddi et al., "Adaptive federated optimization", ICLR 2021. The shape is LEAF's
// for Shakespeare: S. Caldas et al., "LEAF: a benchmark for federated settings", 2018; H. B. McMahan et al., AISTATS 2017, after whom the
// sequences of 80 characters are. Both programs are TensorFlow's, whose LSTM layers have one bias, 1 at the forget gate and else 0 at the
// start; two biases, as PyTorch's layers have, would make it 822,570. Weights begin as PyTorch's do.
#include "clients/nn/neural_model.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct CharLstmOptions {
  std::int64_t embedding = 8, units = 256, layers = 2;
};
inline void describe(Schema& s, CharLstmOptions& o) {
  s.field("embedding", o.embedding, "length of a character's vector").at_least(1).at_most(4096);
  s.field("units", o.units, "length of the state of each layer").at_least(1).at_most(4096);
  s.field("layers", o.layers, "LSTM layers").at_least(1).at_most(16);
}
inline std::vector<std::string> layers_of(const CharLstmOptions& o, bool only_last) {
  std::vector<std::string> layers{"embedding(vocabulary, " + std::to_string(o.embedding) + ")"};
  for (std::int64_t i = 1; i <= o.layers; ++i)
    layers.push_back("lstm(" + std::to_string(o.units) + (only_last && i == o.layers ? ", last=true" : "") + ", bias=one, forget_bias=1)");
  layers.emplace_back("dense(classes)");
  return layers;
}

template <class T>
class CharLstm final : public nn::NeuralModel<T> {
 public:
  explicit CharLstm(const CharLstmOptions& o) : nn::NeuralModel<T>({}, nn::Loss::softmax_cross_entropy), options_(o) {}

  void bind(const Dataset<T>& data) override {
    this->set_layers(layers_of(options_, data.labels_per_row() == 1));
    nn::NeuralModel<T>::bind(data);
  }

 private:
  CharLstmOptions options_;
};

FL_REGISTER_PART(Model, CharLstm, CharLstmOptions,
                 (PartInfo{"model", "char_lstm", "next character of a sequence by LSTM layers", "Caldas et al., LEAF, 2018"}));

}  // namespace fl
