#include "clients/nn/onednn.hpp"

#ifdef FL_WITH_ONEDNN

#include <array>
#include <map>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "fl_core/memory/workspace.hpp"

// Functions of OpenMP's run-time library, which oneDNN asks for its number of threads; that number belongs to the calling thread.
extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int);
}

namespace fl::nn::onednn {

namespace {

using dnnl::memory;
using Tag = memory::format_tag;

class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::primitive_attr with_our_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

memory::desc floats(const memory::dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

// The workspace memory and the stream of one call.
struct Call {
  Workspace::Frame& frame;
  dnnl::stream stream{engine()};

  // 64-byte aligned room in the workspace.
  memory take(const memory::desc& layout) { return {layout, engine(), frame.take<float>((layout.get_size() + 3) / sizeof(float))}; }
  void run(const dnnl::primitive& primitive, const memory::desc& scratch, std::unordered_map<int, memory> arguments) {
    if (scratch.get_size() > 0) arguments[DNNL_ARG_SCRATCHPAD] = take(scratch);
    primitive.execute(stream, arguments);
  }
};

// One argument of a convolution: as the caller holds it, and as the primitive wants it.
class Argument {
 public:
  Argument(memory::desc outside, memory::desc inside) : outside_(std::move(outside)), inside_(std::move(inside)) {
    if (inside_ == outside_) return;
    inwards_.emplace(engine(), outside_, engine(), inside_, with_our_scratch());
    outwards_.emplace(engine(), inside_, engine(), outside_, with_our_scratch());
    move_in_ = dnnl::reorder(*inwards_);
    move_out_ = dnnl::reorder(*outwards_);
  }
  [[nodiscard]] const memory::desc& inside() const { return inside_; }

  // The caller's numbers where the primitive can read them.
  memory read(Call& call, const float* data) const {
    memory held(outside_, engine(), const_cast<float*>(data));
    if (!inwards_) return held;
    memory own = call.take(inside_);
    call.run(move_in_, inwards_->scratchpad_desc(), {{DNNL_ARG_FROM, held}, {DNNL_ARG_TO, own}});
    return own;
  }
  // Where the primitive may write, and how that reaches the caller.
  memory place(Call& call, float* data) const { return inwards_ ? call.take(inside_) : memory(outside_, engine(), data); }
  void write(Call& call, const memory& own, float* data) const {
    if (!inwards_) return;
    call.run(move_out_, outwards_->scratchpad_desc(), {{DNNL_ARG_FROM, own}, {DNNL_ARG_TO, memory(outside_, engine(), data)}});
  }

 private:
  memory::desc outside_, inside_;
  std::optional<dnnl::reorder::primitive_desc> inwards_, outwards_;
  dnnl::reorder move_in_, move_out_;
};

// Shapes of a convolution of B images, and the layouts in which callers hold them.
struct Geometry {
  memory::dims image, weights, out, stride, pad;
  bool has_bias;

  Geometry(const Convolution& c, std::size_t B, bool bias)
      : image(dims(B, c.C, c.H, c.W)),
        weights(dims(c.OC, c.C, c.K, c.K)),
        out(dims(B, c.OC, c.out_height(), c.out_width())),
        stride{static_cast<memory::dim>(c.S), static_cast<memory::dim>(c.S)},
        pad{static_cast<memory::dim>(c.P), static_cast<memory::dim>(c.P)},
        has_bias(bias) {}
  static memory::dims dims(std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
    return {static_cast<memory::dim>(a), static_cast<memory::dim>(b), static_cast<memory::dim>(c), static_cast<memory::dim>(d)};
  }
  [[nodiscard]] memory::desc bias() const { return has_bias ? floats({weights[0]}, Tag::x) : memory::desc(); }
};

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

struct Forward {
  dnnl::convolution_forward::primitive_desc description;
  dnnl::convolution_forward primitive;
  Argument in, weights, out;

  explicit Forward(const Geometry& g)
      : description({dnnl::prop_kind::forward_training, kDirect, floats(g.image, Tag::any), floats(g.weights, Tag::any), g.bias(),
                     floats(g.out, Tag::any), g.stride, g.pad, g.pad},
                    with_our_scratch(), engine()),
        primitive(description),
        in(floats(g.image, Tag::nchw), description.src_desc()),
        weights(floats(g.weights, Tag::oihw), description.weights_desc()),
        out(floats(g.out, Tag::nchw), description.dst_desc()) {}
};

struct Backward {
  dnnl::convolution_forward::primitive_desc hint;
  dnnl::convolution_backward_weights::primitive_desc by_weights_description;
  dnnl::convolution_backward_data::primitive_desc by_input_description;
  dnnl::convolution_backward_weights by_weights;
  dnnl::convolution_backward_data by_input;
  Argument in, d_weights, d_out, weights, d_out_again, d_in;  // the last three of the derivative by the input

  explicit Backward(const Geometry& g)
      : hint({dnnl::prop_kind::forward_training, kDirect, floats(g.image, Tag::any), floats(g.weights, Tag::any), floats(g.out, Tag::any),
              g.stride, g.pad, g.pad},
             engine()),
        by_weights_description(
            {kDirect, floats(g.image, Tag::any), floats(g.weights, Tag::any), floats(g.out, Tag::any), g.stride, g.pad, g.pad},
            with_our_scratch(), engine(), hint),
        by_input_description(
            {kDirect, floats(g.image, Tag::any), floats(g.weights, Tag::any), floats(g.out, Tag::any), g.stride, g.pad, g.pad},
            with_our_scratch(), engine(), hint),
        by_weights(by_weights_description),
        by_input(by_input_description),
        in(floats(g.image, Tag::nchw), by_weights_description.src_desc()),
        d_weights(floats(g.weights, Tag::oihw), by_weights_description.diff_weights_desc()),
        d_out(floats(g.out, Tag::nchw), by_weights_description.diff_dst_desc()),
        weights(floats(g.weights, Tag::oihw), by_input_description.weights_desc()),
        d_out_again(floats(g.out, Tag::nchw), by_input_description.diff_dst_desc()),
        d_in(floats(g.image, Tag::nchw), by_input_description.diff_src_desc()) {}
};

// Primitives of the shapes that this thread has met: making one takes milliseconds. Clients of all sizes end their epochs with
// minibatches of all sizes, so a full store begins anew.
template <class Primitives>
const Primitives& primitives_of(const Convolution& c, std::size_t B, bool bias) {
  using Key = std::array<std::size_t, 9>;
  constexpr std::size_t kMostShapes = 256;
  thread_local std::map<Key, std::unique_ptr<Primitives>> store;
  const Key key{c.C, c.H, c.W, c.OC, c.K, c.P, c.S, B, bias ? std::size_t{1} : 0};
  if (store.size() >= kMostShapes && !store.contains(key)) store.clear();
  auto& made = store[key];
  if (!made) made = std::make_unique<Primitives>(Geometry(c, B, bias));
  return *made;
}

}  // namespace

bool is_worth_it(Op op_b, std::size_t m, std::size_t n, std::size_t k, bool suits_tiles) {
  if (suits_tiles) return op_b == Op::plain && m * n * k >= 1 << 22;
  return m * n * k >= 1 << 14;
}

void gemm(Op op_a, Op op_b, std::size_t m, std::size_t n, std::size_t k, const float* A, std::size_t lda, const float* B, std::size_t ldb,
          bool add, float* C, std::size_t ldc) {
  const OneThread one;
  const auto dim = [](std::size_t size) { return static_cast<dnnl_dim_t>(size); };
  const auto letter = [](Op op) { return op == Op::plain ? 'N' : 'T'; };
  dnnl::sgemm(letter(op_a), letter(op_b), dim(m), dim(n), dim(k), 1, A, dim(lda), B, dim(ldb), add ? 1.0f : 0.0f, C, dim(ldc));
}

void convolve(const Exec& exec, const Convolution& c, std::size_t B, const float* w, const float* bias, const float* in, float* out) {
  const OneThread one;
  Workspace::Frame frame(*exec.workspace);
  Call call{frame};
  const auto& forward = primitives_of<Forward>(c, B, bias != nullptr);
  const memory to = forward.out.place(call, out);
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, forward.in.read(call, in)}, {DNNL_ARG_WEIGHTS, forward.weights.read(call, w)}, {DNNL_ARG_DST, to}};
  if (bias != nullptr) arguments[DNNL_ARG_BIAS] = memory(forward.description.bias_desc(), engine(), const_cast<float*>(bias));
  call.run(forward.primitive, forward.description.scratchpad_desc(), std::move(arguments));
  forward.out.write(call, to, out);
}

void convolve_back(const Exec& exec, const Convolution& c, std::size_t B, const float* w, const float* in, const float* d_out, bool add,
                   float* d_in, float* d_w) {
  const OneThread one;
  Workspace::Frame frame(*exec.workspace);
  Call call{frame};
  const auto& back = primitives_of<Backward>(c, B, false);
  const memory slope = back.d_out.read(call, d_out);

  const std::size_t size = c.OC * c.C * c.K * c.K;
  float* own = add ? frame.take<float>(size) : d_w;
  const memory by_weights = back.d_weights.place(call, own);
  call.run(back.by_weights, back.by_weights_description.scratchpad_desc(),
           {{DNNL_ARG_SRC, back.in.read(call, in)}, {DNNL_ARG_DIFF_DST, slope}, {DNNL_ARG_DIFF_WEIGHTS, by_weights}});
  back.d_weights.write(call, by_weights, own);
  for (std::size_t j = 0; add && j < size; ++j) d_w[j] += own[j];
  if (d_in == nullptr) return;

  const memory slope_again = back.d_out_again.inside() == back.d_out.inside() ? slope : back.d_out_again.read(call, d_out);
  const memory by_input = back.d_in.place(call, d_in);
  call.run(back.by_input, back.by_input_description.scratchpad_desc(),
           {{DNNL_ARG_WEIGHTS, back.weights.read(call, w)}, {DNNL_ARG_DIFF_DST, slope_again}, {DNNL_ARG_DIFF_SRC, by_input}});
  back.d_in.write(call, by_input, d_in);
}

}  // namespace fl::nn::onednn

#endif
