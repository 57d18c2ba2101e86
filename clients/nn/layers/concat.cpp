// Two branches side by side: out {a + b} = first(in) {a}, then second(in) {b}. Tensors: those of the first, then those of the second.
#include <algorithm>

#include "clients/nn/branch.hpp"

namespace fl::nn {

struct ConcatOptions {
  std::vector<std::string> first, second;
};
inline void describe(Schema& s, ConcatOptions& o) {
  s.field("first", o.first, "layers in brackets").required();
  s.field("second", o.second, "layers in brackets").required();
}
inline void validate(const ConcatOptions& o, Problems& problems) {
  check_layers("first", o.first, problems);
  check_layers("second", o.second, problems);
}

template <class T>
class Concat final : public Module<T> {
 public:
  explicit Concat(const ConcatOptions& options) : options_(options) {}

  void know(const DataNames& names) override { names_ = names; }
  Shape bind(const Shape& input) override {
    first_ = Branch<T>(options_.first, input, names_, 1);
    second_ = Branch<T>(options_.second, input, names_, 2);
    n_ = input.size();
    for (const Branch<T>* branch : {&first_, &second_})
      if (branch->output().dims.size() != 1)
        throw ConfigError("concat joins plain numbers, a branch gives " + branch->output().text() + "; end it with \"flatten\"");
    return {{first_.output().size() + second_.output().size()}};
  }
  [[nodiscard]] std::vector<Layer> tensors() const override { return tensors_of(first_, "first", second_, "second"); }
  [[nodiscard]] std::optional<LayerForm> as_form() const override { return form_of<T>({&first_, &second_}); }
  [[nodiscard]] std::size_t room_size(std::size_t B) const override { return B * n_ + std::max(first_.room_size(B), second_.room_size(B)); }
  [[nodiscard]] std::size_t least_examples() const override { return std::max(first_.least_examples(), second_.least_examples()); }
  // Outputs are copied side by side, and the derivatives by the input are added.
  [[nodiscard]] std::optional<LayerCost> cost() const override {
    const auto copied = 2 * static_cast<double>(first_.output().size() + second_.output().size()), n = static_cast<double>(n_);
    std::optional<LayerCost> sum = cost_of_branches<T>({&first_, &second_});
    if (!sum) return sum;
    sum->forward.row += work_on<T>(0, copied);
    sum->by_weights.row += work_on<T>(0, copied);
    sum->by_input.row += work_on<T>(n, 3 * n);
    return sum;
  }
  void initial(RandomSequence& random, T* w) const override {
    first_.network().initial(random, w);
    second_.network().initial(random, w + first_.size());
  }

  [[nodiscard]] std::size_t saved_size(std::size_t B) const override { return first_.saved_size(B) + second_.saved_size(B); }

  void forward(const Pass& pass, const T* w, const T* in, T* out, T* saved) const override {
    const std::size_t a = first_.output().size(), b = second_.output().size();
    first_.forward(pass, w, in, saved, [&](const T* z) { copy_columns(pass.B, a, z, a, out, a + b); });
    second_.forward(pass, w + first_.size(), in, saved + first_.saved_size(pass.B),
                    [&](const T* z) { copy_columns(pass.B, b, z, b, out + a, a + b); });
  }
  void backward(const Pass& pass, const T* w, const T* in, const T*, const T* saved, const T* d_out, T* d_in, T* d_w) const override {
    const std::size_t a = first_.output().size(), b = second_.output().size(), n = pass.B * n_;
    Workspace::Frame frame(*pass.exec.workspace);
    T* beside = d_in != nullptr ? frame.take<T>(n) : nullptr;
    first_.backward(
        pass, w, in, saved, [&](T* d_z) { copy_columns(pass.B, a, d_out, a + b, d_z, a); }, d_in, d_w);
    second_.backward(
        pass, w + first_.size(), in, saved + first_.saved_size(pass.B), [&](T* d_z) { copy_columns(pass.B, b, d_out + a, a + b, d_z, b); },
        beside, d_w + first_.size());
    for (std::size_t j = 0; d_in != nullptr && j < n; ++j) d_in[j] += beside[j];
  }

 private:
  // `count` numbers of each of B rows; rows begin every `from_stride` and `to_stride`.
  static void copy_columns(std::size_t B, std::size_t count, const T* from, std::size_t from_stride, T* to, std::size_t to_stride) {
    for (std::size_t b = 0; b < B; ++b) std::copy_n(from + b * from_stride, count, to + b * to_stride);
  }
  ConcatOptions options_;
  DataNames names_;
  Branch<T> first_, second_;
  std::size_t n_ = 0;
};

FL_REGISTER_PART(Module, Concat, ConcatOptions, (PartInfo{"layer", "concat", "two branches on the same input, side by side", ""}));

}  // namespace fl::nn
