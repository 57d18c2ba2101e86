// Neural collaborative filtering: does a user care for an item? Matrix factorisation and a perceptron, each with vectors of its own for
// users and items, joined by one linear unit whose output is the score s(u,i).
//
//   s(u,i) = <h, [ p_u * q_i ; MLP([p'_u ; q'_i]) ]> + b       loss = mean of -log sigma(s) of an observed pair and -log(1 - sigma(s)) of
//                                                              `negatives` items that the user has not met
// Every rating counts as observed, whatever its value. A minibatch of a local step draws its negatives anew from (seed, client, round,
// step, row); the objective f itself, its full gradient and its value, has fixed ones that follow from the row's number alone. The sizes
// are those of the published code: 8 factors, a perceptron of 64 inputs and 32, 16, 8 units; P = 40 (users + items) + 2,761. X. He, L.
// Liao, H. Zhang, L. Nie, X. Hu and T.-S. Chua, "Neural collaborative filtering", WWW 2017.
#include "clients/nn/neural_model.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/data/interactions.hpp"

namespace fl {

struct NcfOptions {
  std::int64_t factors = 8, embedding = 32;
  std::vector<std::int64_t> hidden{32, 16, 8};
  std::int64_t negatives = 4;
};
inline void describe(Schema& s, NcfOptions& o) {
  s.field("factors", o.factors, "length of the vectors that are multiplied (generalised matrix factorisation)").at_least(1).at_most(65536);
  s.field("embedding", o.embedding, "length of the vectors that the perceptron reads, one of the user and one of the item")
      .at_least(1)
      .at_most(65536);
  s.field("hidden", o.hidden, "units of the perceptron's layers, each followed by relu").at_least(1).at_most(65536);
  s.field("negatives", o.negatives, "items drawn for each observed one, among those that the user has not rated").at_least(1).at_most(1024);
}
inline std::vector<std::string> layers_of(const NcfOptions& o) {
  const auto vectors = [](std::int64_t length) { return "embedding(vocabulary, " + std::to_string(length) + ", deviation=0.01)"; };
  std::string perceptron = vectors(o.embedding) + ", flatten";
  for (const std::int64_t units : o.hidden) perceptron += ", dense(" + std::to_string(units) + ", init=xavier_uniform), relu";
  return {"concat([" + vectors(o.factors) + ", product], [" + perceptron + "])", "dense(1)"};
}

template <class T>
class Ncf final : public nn::NeuralModel<T> {
 public:
  explicit Ncf(const NcfOptions& o)
      : nn::NeuralModel<T>(layers_of(o), nn::Loss::logistic), negatives_(static_cast<std::size_t>(o.negatives)) {
    this->set_examples_per_row(1 + negatives_);
  }

  void bind(const Dataset<T>& data) override {
    if (data.vocabulary.num_users == 0 || data.num_features != 2)
      throw key_error("model.kind", "ncf learns from ratings of items by users; data set \"" + data.name + "\" has none");
    if (data.target.empty())
      throw key_error("model.kind", "ncf takes every rating as one observation: set data.labels = \"target\", classes are not predicted");
    met_ = Interactions(data.vocabulary.num_users, data.num_items());
    met_.add(data);
    for (std::size_t user = 0; user < data.vocabulary.num_users; ++user)
      if (met_.num_unmet(user) < 2)
        throw ConfigError("data set \"" + data.name + "\": user " + std::to_string(user) +
                          " has met all items but one or none; ncf needs others to draw from");
    nn::NeuralModel<T>::bind(data);
  }

  [[nodiscard]] std::optional<NetworkForm> as_form() const override {
    std::optional<NetworkForm> form = this->form_of_layers();
    if (form) {
      form->negatives = negatives_;
      form->met = &met_;
    }
    return form;
  }

 protected:
  void make_examples(const Dataset<T>& data, std::span<const std::uint32_t> rows, const RandomStream* random, std::size_t first, T* in,
                     double* target) const override {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::int32_t *pair = &data.tokens[std::size_t{2} * rows[r]], user = pair[0], first_item = num_users();
      const MetItems met = met_.of(static_cast<std::size_t>(user));
      const RandomStream stream = random != nullptr ? numbers_of_negatives(*random) : fixed_numbers_of_negatives(rows[r]);
      const std::size_t place = random != nullptr ? (first + r) * negatives_ : 0;
      for (std::size_t e = 0; e <= negatives_; ++e, in += 2, ++target) {
        in[0] = static_cast<T>(user);
        in[1] = static_cast<T>(e == 0 ? pair[1] : first_item + met.draw_unmet(pair[1] - first_item, stream.bits(place + e - 1)));
        *target = e == 0 ? 1 : 0;
      }
    }
  }

 private:
  [[nodiscard]] std::int32_t num_users() const { return static_cast<std::int32_t>(met_.num_users()); }

  std::size_t negatives_;
  Interactions met_;
};

FL_REGISTER_PART(Model, Ncf, NcfOptions,
                 (PartInfo{"model", "ncf", "neural collaborative filtering: matrix factorisation and a perceptron on users and items",
                           "He et al., WWW 2017"}));

}  // namespace fl
