// Embedding: each number of the input, 0 .. entries-1, becomes a vector of `units` numbers. {length} to {length, units}.
//
// Tensor: weight [entries,units], from N(0,1) as PyTorch's, or N(0, deviation^2).
#include <algorithm>

#include "clients/nn/module.hpp"

namespace fl::nn {

struct EmbeddingOptions {
  std::int64_t entries = 0, units = 0;
  double deviation = 1;
};
inline void describe(Schema& s, EmbeddingOptions& o) {
  s.field("entries", o.entries, "number of different values of the input, such as vocabulary").at_least(1).at_most(1 << 24).required();
  s.field("units", o.units, "length of the vectors").at_least(1).at_most(65536).required();
  s.field("deviation", o.deviation, "standard deviation of the initial entries").at_least(0);
}

template <class T>
class Embedding final : public Module<T> {
 public:
  explicit Embedding(const EmbeddingOptions& options)
      : entries_(static_cast<std::size_t>(options.entries)),
        units_(static_cast<std::size_t>(options.units)),
        deviation_(options.deviation) {}

  void know(const std::map<std::string, std::int64_t>& names) override {
    if (const auto at = names.find("vocabulary"); at != names.end()) vocabulary_ = static_cast<std::size_t>(at->second);
  }
  Shape bind(const Shape& input) override {
    if (input.dims.size() != 1) throw ConfigError("embedding needs a sequence {length}, its input is " + input.text());
    length_ = input.size();
    return {{length_, units_}};
  }
  [[nodiscard]] std::vector<Layer> tensors() const override { return {{"weight", 0, entries_, units_}}; }
  // Where tokens may be beyond the table, the CPU says so.
  [[nodiscard]] std::optional<LayerForm> as_form() const override {
    if (vocabulary_ == 0 || vocabulary_ > entries_) return std::nullopt;
    return LayerForm({{"entries", entries_}, {"units", units_}, {"length", length_}});
  }
  void initial(RandomSequence& random, T* w) const override {
    for (std::size_t j = 0; j < entries_ * units_; ++j) w[j] = static_cast<T>(deviation_ * random.normal());
  }
  // A row's vectors are copied; their derivatives are added to a gradient that a minibatch sets to zero.
  [[nodiscard]] std::optional<LayerCost> cost() const override {
    const auto length = static_cast<double>(length_), units = static_cast<double>(units_), entries = static_cast<double>(entries_);
    return LayerCost{
        .forward = {.row = work_on<T>(0, length * (1 + 2 * units))},
        .by_weights = {.row = work_on<T>(length * units, length * (1 + 3 * units)), .minibatch = work_on<T>(0, entries * units)},
        .by_input = {}};
  }
  void forward(const Pass& pass, const T* w, const T* in, T* out, T*) const override {
    for (std::size_t i = 0; i < pass.B * length_; ++i) std::copy_n(w + entry(in[i]) * units_, units_, out + i * units_);
  }
  void backward(const Pass& pass, const T*, const T* in, const T*, const T*, const T* d_out, T*, T* d_w) const override {
    if (!pass.accumulate) std::fill_n(d_w, entries_ * units_, T(0));
    for (std::size_t i = 0; i < pass.B * length_; ++i) {
      T* to = d_w + entry(in[i]) * units_;
      for (std::size_t u = 0; u < units_; ++u) to[u] += d_out[i * units_ + u];
    }
  }

 private:
  // Loaders keep to the vocabulary; what is beyond (features that are no tokens) would read past the table.
  [[nodiscard]] std::size_t entry(T x) const {
    const auto number = static_cast<std::size_t>(x);
    if (!(x >= T(0)) || number >= entries_)
      throw ConfigError("embedding of " + std::to_string(entries_) + " entries was given the number " + std::to_string(x));
    return number;
  }
  std::size_t entries_, units_, length_ = 0, vocabulary_ = 0;
  double deviation_;
};

FL_REGISTER_PART(Module, Embedding, EmbeddingOptions, (PartInfo{"layer", "embedding", "a vector for each number of a sequence", ""}));

}  // namespace fl::nn
