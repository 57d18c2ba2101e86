// Pooling over windows of an image {C,H,W}: the largest entry, or the mean. Output {C,(H-size)/stride+1,(W-size)/stride+1}.
//
// Windows lie inside the image; rows and columns that fill no window are left out. size = 0 pools the whole image to {C,1,1}.
// Of equal entries the first takes the gradient. The largest of a window with NaN is NaN, and the last NaN takes the gradient, as in
// PyTorch.
#include <algorithm>

#include "clients/nn/module.hpp"

namespace fl::nn {

struct PoolOptions {
  std::int64_t size = 2, stride = 0;
};
inline void describe(Schema& s, PoolOptions& o) {
  s.field("size", o.size, "height and width of a window; 0 = the whole image").at_least(0).at_most(4096);
  s.field("stride", o.stride, "distance between windows; 0 = their size").at_least(0).at_most(4096);
}

template <class T>
class Pooling : public Module<T> {
 public:
  explicit Pooling(const PoolOptions& options)
      : size_(static_cast<std::size_t>(options.size)), stride_(static_cast<std::size_t>(options.stride)) {}
  Shape bind(const Shape& input) override {
    if (!input.is_image()) throw ConfigError("pooling needs images {channels, height, width}, its input is " + input.text());
    channels_ = input.channels();
    height_ = input.height();
    width_ = input.width();
    window_h_ = size_ > 0 ? size_ : height_;
    window_w_ = size_ > 0 ? size_ : width_;
    if (window_h_ > height_ || window_w_ > width_)
      throw ConfigError("pooling with windows of " + std::to_string(size_) + " does not fit into " + input.text());
    stride_h_ = stride_ > 0 ? stride_ : window_h_;
    stride_w_ = stride_ > 0 ? stride_ : window_w_;
    out_h_ = (height_ - window_h_) / stride_h_ + 1;
    out_w_ = (width_ - window_w_) / stride_w_ + 1;
    return {{channels_, out_h_, out_w_}};
  }
  [[nodiscard]] std::optional<LayerForm> as_form() const override {
    return LayerForm({{"channels", channels_},
                      {"height", height_},
                      {"width", width_},
                      {"out_height", out_h_},
                      {"out_width", out_w_},
                      {"window_height", window_h_},
                      {"window_width", window_w_},
                      {"stride_height", stride_h_},
                      {"stride_width", stride_w_}});
  }

  // One operation for each entry of a window in forward, and as many in backward, which finds the largest again or adds a share.
  [[nodiscard]] std::optional<LayerCost> cost() const override {
    const auto in = static_cast<double>(in_size()), out = static_cast<double>(channels_ * out_h_ * out_w_);
    const double read = out * static_cast<double>(window_h_ * window_w_);
    return LayerCost{
        .forward = {.row = work_on<T>(read, read + out)}, .by_weights = {}, .by_input = {.row = work_on<T>(read + out, read + in + out)}};
  }

 protected:
  [[nodiscard]] std::size_t in_size() const { return channels_ * height_ * width_; }
  // Calls f(offset of the window's first entry in the plane, index of the output in its plane).
  template <class F>
  void windows(const F& f) const {
    for (std::size_t y = 0; y < out_h_; ++y)
      for (std::size_t x = 0; x < out_w_; ++x) f(y * stride_h_ * width_ + x * stride_w_, y * out_w_ + x);
  }
  std::size_t size_, stride_, channels_ = 0, height_ = 0, width_ = 0, window_h_ = 0, window_w_ = 0, stride_h_ = 0, stride_w_ = 0;
  std::size_t out_h_ = 0, out_w_ = 0;
};

template <class T>
class MaxPool final : public Pooling<T> {
 public:
  using Pooling<T>::Pooling;
  void forward(const Pass& pass, const T*, const T* in, T* out, T*) const override {
    const std::size_t plane = this->height_ * this->width_, out_plane = this->out_h_ * this->out_w_;
    const Ends ends{in + pass.B * this->in_size(), out + pass.B * this->channels_ * out_plane};
    for (std::size_t p = 0; p < pass.B * this->channels_; ++p) {
      const T* from = in + p * plane;
      T* to = out + p * out_plane;
      if (is_two_by_two())
        for (std::size_t y = 0; y < this->out_h_; ++y) pairs(from + 2 * y * this->width_, to + y * this->out_w_, ends);
      else
        this->windows([&](std::size_t first, std::size_t o) { to[o] = from[where(from, first)]; });
    }
  }
  void backward(const Pass& pass, const T*, const T* in, const T*, const T*, const T* d_out, T* d_in, T*) const override {
    if (d_in == nullptr) return;
    const std::size_t plane = this->height_ * this->width_, out_plane = this->out_h_ * this->out_w_;
    const bool covered = is_two_by_two() && this->height_ % 2 == 0 && this->width_ % 2 == 0;
    if (!covered) std::fill_n(d_in, pass.B * this->in_size(), T(0));
    const Ends ends{in + pass.B * this->in_size(), d_out + pass.B * this->channels_ * out_plane};
    for (std::size_t p = 0; p < pass.B * this->channels_; ++p) {
      const T *from = in + p * plane, *d = d_out + p * out_plane;
      T* to = d_in + p * plane;
      if (is_two_by_two()) {
        int with_nan[kPiece] = {};
        for (std::size_t y = 0; y < this->out_h_; ++y)
          pairs_back(from + 2 * y * this->width_, d + y * this->out_w_, to + 2 * y * this->width_, ends, with_nan);
        if (std::any_of(with_nan, with_nan + kPiece, [](int found) { return found != 0; })) give_to_nan(from, d, to);
      } else {
        this->windows([&](std::size_t first, std::size_t o) { to[where(from, first)] += d[o]; });
      }
    }
  }

 private:
  [[nodiscard]] bool is_two_by_two() const {
    return this->window_h_ == 2 && this->window_w_ == 2 && this->stride_h_ == 2 && this->stride_w_ == 2;
  }
  // One past the last entries that may be read, of the layer's input and of its output.
  struct Ends {
    const T *in, *out;
  };
  // Outputs at once. Where a row ends within them, what follows it is read with the rest as long as it is there, and not written.
  static constexpr std::size_t kPiece = 8;
  // Calls piece(first output, outputs to compute, outputs to write) along a row of outputs that are made of rows `in` and the next one.
  template <class F>
  void along_row(const T* in, const T* out, const Ends& ends, const F& piece) const {
    for (std::size_t x = 0; x < this->out_w_; x += kPiece) {
      const bool has_room = static_cast<std::size_t>(ends.in - (in + 2 * x)) >= this->width_ + 2 * kPiece &&
                            static_cast<std::size_t>(ends.out - (out + x)) >= kPiece;
      const std::size_t left = this->out_w_ - x;
      if (left >= kPiece)
        piece(x, kPiece, kPiece);
      else if (has_room)
        piece(x, kPiece, left);
      else
        piece(x, left, left);
    }
  }
  // Windows of 2x2 along two rows, without branches.
  void pairs(const T* a, T* out, const Ends& ends) const {
    const T* b = a + this->width_;
    along_row(
        a, out, ends, [=](std::size_t first, std::size_t computed, std::size_t written) __attribute__((always_inline)) {
          T largest[kPiece];
          for (std::size_t i = 0; i < computed; ++i) {
            const std::size_t x = 2 * (first + i);
            largest[i] = larger(larger(a[x], a[x + 1]), larger(b[x], b[x + 1]));
          }
          std::copy_n(largest, written, out + first);
        });
  }
  // with_nan [kPiece]: entries become 1 where the largest of a window is NaN, which then gives its gradient to nobody.
  void pairs_back(const T* a, const T* d, T* d_a, const Ends& ends, int* with_nan) const {
    const T* b = a + this->width_;
    T* d_b = d_a + this->width_;
    along_row(
        a, d, ends, [=](std::size_t first, std::size_t computed, std::size_t written) __attribute__((always_inline)) {
          T by_a[2 * kPiece], by_b[2 * kPiece];
          for (std::size_t i = 0; i < computed; ++i) {
            const std::size_t x = 2 * (first + i);
            const T a0 = a[x], a1 = a[x + 1], b0 = b[x], b1 = b[x + 1];
            const T largest = larger(larger(a0, a1), larger(b0, b1));
            with_nan[i] |= largest != largest ? 1 : 0;
            T left = d[first + i];  // until an entry has taken it
            const auto take = [&left, largest](T entry) {
              const T taken = entry == largest ? left : T(0);
              left = entry == largest ? T(0) : left;
              return taken;
            };
            by_a[2 * i] = take(a0);
            by_a[2 * i + 1] = take(a1);
            by_b[2 * i] = take(b0);
            by_b[2 * i + 1] = take(b1);
          }
          std::copy_n(by_a, 2 * written, d_a + 2 * first);
          std::copy_n(by_b, 2 * written, d_b + 2 * first);
        });
  }
  // The gradients of a plane's windows with NaN.
  [[gnu::noinline]] void give_to_nan(const T* plane, const T* d, T* d_plane) const {
    this->windows([&](std::size_t first, std::size_t o) {
      const std::size_t at = where(plane, first);
      if (plane[at] != plane[at]) d_plane[at] = d[o];
    });
  }
  // The first of equal ones, and NaN where one of them is.
  [[gnu::always_inline]] static T larger(T a, T b) {
    const T largest = std::max(a, b);  // a where a is NaN
    return b != b ? b : largest;
  }
  [[nodiscard]] std::size_t where(const T* plane, std::size_t first) const {
    std::size_t best = first;
    T sum = T(0);  // NaN where an entry is, and where infinities of both signs are
    for (std::size_t i = 0; i < this->window_h_; ++i)
      for (std::size_t j = 0; j < this->window_w_; ++j) {
        const std::size_t at = first + i * this->width_ + j;
        if (plane[at] > plane[best]) best = at;
        sum += plane[at];
      }
    return sum == sum ? best : last_nan(plane, first, best);
  }
  [[nodiscard, gnu::noinline]] std::size_t last_nan(const T* plane, std::size_t first, std::size_t otherwise) const {
    std::size_t found = otherwise;
    for (std::size_t i = 0; i < this->window_h_; ++i)
      for (std::size_t j = 0; j < this->window_w_; ++j) {
        const std::size_t at = first + i * this->width_ + j;
        if (plane[at] != plane[at]) found = at;
      }
    return found;
  }
};

template <class T>
class MeanPool final : public Pooling<T> {
 public:
  using Pooling<T>::Pooling;
  void forward(const Pass& pass, const T*, const T* in, T* out, T*) const override {
    each(pass, [&](std::size_t at, std::size_t o, T share, bool first) { out[o] = (first ? T(0) : out[o]) + share * in[at]; });
  }
  void backward(const Pass& pass, const T*, const T*, const T*, const T*, const T* d_out, T* d_in, T*) const override {
    if (d_in == nullptr) return;
    std::fill_n(d_in, pass.B * this->in_size(), T(0));
    each(pass, [&](std::size_t at, std::size_t o, T share, bool) { d_in[at] += share * d_out[o]; });
  }

 private:
  // Calls f(input index, output index, 1 / window, whether it is the window's first) for every entry of every window.
  template <class F>
  void each(const Pass& pass, const F& f) const {
    const std::size_t plane = this->height_ * this->width_, out_plane = this->out_h_ * this->out_w_;
    const T share = T(1) / static_cast<T>(this->window_h_ * this->window_w_);
    for (std::size_t p = 0; p < pass.B * this->channels_; ++p)
      this->windows([&](std::size_t first, std::size_t o) {
        for (std::size_t i = 0; i < this->window_h_; ++i)
          for (std::size_t j = 0; j < this->window_w_; ++j)
            f(p * plane + first + i * this->width_ + j, p * out_plane + o, share, i == 0 && j == 0);
      });
  }
};

FL_REGISTER_PART(Module, MaxPool, PoolOptions, (PartInfo{"layer", "max_pool", "largest entry of each window", ""}));
FL_REGISTER_PART(Module, MeanPool, PoolOptions,
                 (PartInfo{"layer", "mean_pool", "mean of each window; size = 0 pools the whole image", ""}));

}  // namespace fl::nn
