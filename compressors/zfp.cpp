// ZFP-like compression at a fixed accuracy: blocks of four numbers (or 4 x 4) go through a cosine transform, whose coefficients are rounded
// to a grid and entropy-coded.
//
//   block = "line"     y = A x for every four numbers of a segment, in order
//   block = "square"   Y = A X A^T for every 4 x 4 numbers of a matrix; other segments as "line"
//   A [4,4] orthonormal, A_ki = w_k cos(pi (2i+1) k / 8), w_0 = 1/2, else 1/sqrt(2)                                       (DCT-II)
//   h = 2 eb (1 - m) / g,   level_k = the integer nearest to y_k / h,   C(x) = A^T (h level)          (m, R:
//   compressors/support/error_bound.hpp) g = G = max_i sum_k |A_ki| = 1 + cos(pi/8) = 1.924 for a line, G^2 = 3.701 for a square
//
// A block that the edge of its segment cuts to r < 4 numbers (or rows, or columns) takes the cosine transform of length r, so that a
// segment has as many coefficients as numbers: nothing is padded. The coefficient (k, l) of a block travels in the place of its entry (k,
// l).
//
// Absolute: |C(x)_j - x_j| <= eb for every entry, and |C(x)-x|^2 <= kappa^2 = eb^2 sum over segments of n ((1-m)/g + m)^2, for every draw.
// Proof: a coefficient has an error of at most h/2. Entry i has the error |sum_k A_ki e_k| <= G h/2 = eb (1-m); a square applies this in
// both directions. A is orthonormal, so the squared error of a block is the one of its coefficients, at most h^2/4 each. The transforms of
// lengths 1, 2 and 3 have the gains 1, 1.415 and 1.693, below G. The roundings of both transforms, of the quotients and of the products are
// those of double: with coefficients of at most 4 max|x| they add up to less than 2^-44 max|x| <= m eb/4. The rounding to T adds at most
// u (R+1) eb < 0.51 m eb in float32 (u = 2^-24) and none in float64. Below the normal numbers of T it adds at most u eb.
// kappa does not depend on x: error feedback around C keeps an error of at most kappa for all gradients, as around hard_threshold.
// rule = "error_bound": eb is in units of the input. rule = "lambda": it is in units of the gradient, as for absolute_rounding.
//
// Bits: levels in the width of the largest one, or in the codec's entropy code if that is shorter. The receiver computes C(x) from the
// levels by the operations of the sender, on every device. Published bits: the levels at their width. Smooth inputs have few large
// coefficients; independent numbers have coefficients as large as themselves on a grid finer by g, which is log2 g = 0.94 or 1.89 bits.
// zfp itself lifts a transform of integers that is near to A but not orthonormal, and codes bit planes. We take A because it bounds the
// squared error too. P. Lindstrom, "Fixed-rate compressed floating-point arrays", IEEE TVCG 20 (2014); N. Ahmed, T. Natarajan, K. R. Rao,
// "Discrete cosine transform", IEEE Transactions on Computers C-23 (1974).
// Group: quantiser
#include <algorithm>
#include <cmath>
#include <limits>

#include "compressors/compressor.hpp"
#include "compressors/support/error_bound.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/differences.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

enum class TransformBlock { line, square };

struct ZfpOptions {
  AbsoluteScale error_bound;
  TransformBlock block = TransformBlock::line;
};

inline void describe(Schema& s, ZfpOptions& o) {
  describe_absolute_scale(s, o.error_bound, "error_bound", "eb, the largest error of an entry");
  s.choice("block", o.block, {{TransformBlock::line, "line"}, {TransformBlock::square, "square"}},
           "numbers that are transformed together: four in order, or 4 x 4 of a matrix");
}
inline void validate(const ZfpOptions& o, Problems& problems) { validate_absolute_scale("error_bound", o.error_bound, problems); }

namespace FL_DEVICE_NS {
namespace {

constexpr double kLineGain = 1.9238795325112867;      // G
constexpr double kLongCosine = 0.65328148243818826;   // cos(pi/8) / sqrt(2)
constexpr double kShortCosine = 0.27059805007309849;  // sin(pi/8) / sqrt(2)
constexpr double kRootOfHalf = 0.70710678118654752;   // 1 / sqrt(2)
constexpr double kRootOfThird = 0.57735026918962576;  // 1 / sqrt(3)
constexpr double kRootOfSixth = 0.40824829046386302;  // 1 / sqrt(6)
constexpr std::size_t kSide = 4;

// ---- the cosine transforms of one to four numbers, in place ----

// Returns a b. g++ 12 fuses products with additions and subtractions of neighbouring vector lanes, even under -ffp-contract=off. What it
// fuses with the zero is rounded as the product is, so the result is the same wherever this is compiled. Halves and doubles are exact.
FL_HD inline double times(double a, double b) { return a * b + 0.0; }

FL_HD inline void transform(double& a, double& b, double& c, double& d) {
  const double outer = a + d, inner = b + c, across = a - d, between = b - c;
  a = 0.5 * (outer + inner);
  b = times(kLongCosine, across) + times(kShortCosine, between);
  c = 0.5 * (outer - inner);
  d = times(kShortCosine, across) - times(kLongCosine, between);
}
FL_HD inline void invert(double& a, double& b, double& c, double& d) {
  const double outer = 0.5 * (a + c), inner = 0.5 * (a - c);
  const double across = times(kLongCosine, b) + times(kShortCosine, d), between = times(kShortCosine, b) - times(kLongCosine, d);
  a = outer + across;
  b = inner + between;
  c = inner - between;
  d = outer - across;
}
// x[0], x[stride], ..: `count` numbers
FL_HD inline void transform(double* x, std::size_t stride, std::size_t count) {
  double &a = x[0], &b = x[stride], &c = x[2 * stride], &d = x[3 * stride];
  if (count == 4) return transform(a, b, c, d);
  if (count == 3) {
    const double sum = a + c, difference = a - c, middle = b;
    a = times(kRootOfThird, sum + middle);
    b = times(kRootOfHalf, difference);
    c = times(kRootOfSixth, sum - 2 * middle);
  } else if (count == 2) {
    const double sum = a + b, difference = a - b;
    a = times(kRootOfHalf, sum);
    b = times(kRootOfHalf, difference);
  }
}
FL_HD inline void invert(double* x, std::size_t stride, std::size_t count) {
  double &a = x[0], &b = x[stride], &c = x[2 * stride], &d = x[3 * stride];
  if (count == 4) return invert(a, b, c, d);
  if (count == 3) {
    const double mean = times(kRootOfThird, a), slope = times(kRootOfHalf, b), bend = times(kRootOfSixth, c);
    a = (mean + bend) + slope;
    b = mean - 2 * bend;
    c = (mean + bend) - slope;
  } else if (count == 2) {
    const double sum = times(kRootOfHalf, a), difference = times(kRootOfHalf, b);
    a = sum + difference;
    b = sum - difference;
  }
}

// ---- blocks of kHeight x 4 numbers of a matrix [rows,cols]; a line is a matrix with one row ----

// The host transforms groups of blocks together, so that a vector instruction serves one number of each block.
constexpr std::size_t kGroup = kThisDevice == Device::cuda ? 1 : 16;

struct BlockGrid {
  std::size_t rows, cols;
  [[nodiscard]] FL_HD std::size_t groups_across() const { return (cols + kSide * kGroup - 1) / (kSide * kGroup); }
  [[nodiscard]] FL_HD std::size_t groups(std::size_t height) const { return (rows + height - 1) / height * groups_across(); }
};

// Calls whole(first) for a group of whole blocks that begin at number `first`, and part(first, height, width) for each block of a group at
// the edge.
template <std::size_t kHeight, class Whole, class Part>
FL_HD inline void visit_group(const BlockGrid& grid, std::size_t index, Whole whole, Part part) {
  const std::size_t across = grid.groups_across(), row = index / across * kHeight, col = index % across * (kSide * kGroup);
  const std::size_t rows_left = grid.rows - row, cols_left = grid.cols - col;
  if (rows_left >= kHeight && cols_left >= kSide * kGroup) return whole(row * grid.cols + col);
  const std::size_t height = rows_left < kHeight ? rows_left : kHeight, last = cols_left < kSide * kGroup ? cols_left : kSide * kGroup;
  for (std::size_t j = 0; j < last; j += kSide) part(row * grid.cols + col + j, height, last - j < kSide ? last - j : kSide);
}

// Writes the levels of the coefficients of p.
template <class T, class L, std::size_t kHeight>
struct TransformGroup {
  const T* p;
  L* level;
  BlockGrid grid;
  double inverse;  // 1 / h
  double largest;  // of a level; only numbers that another thread has changed have larger ones
  [[nodiscard]] FL_HD L level_of(double y) const {
    double q = rint(y * inverse);
    q = q < largest ? q : largest;  // NaN becomes the largest
    q = q > -largest ? q : -largest;
    return static_cast<L>(static_cast<std::int32_t>(q));
  }

  FL_HD void operator()(std::size_t index) const {
    visit_group<kHeight>(
        grid, index, [this](std::size_t first) { transform_whole(first); },
        [this](std::size_t first, std::size_t height, std::size_t width) { transform_part(first, height, width); });
  }
  FL_HD void transform_whole(std::size_t first) const {
    double x[kHeight][kSide][kGroup];
    for (std::size_t i = 0; i < kHeight; ++i) {
      const T* from = p + first + i * grid.cols;
      for (std::size_t b = 0; b < kGroup; ++b)
        for (std::size_t j = 0; j < kSide; ++j) x[i][j][b] = static_cast<double>(from[kSide * b + j]);
      for (std::size_t b = 0; b < kGroup; ++b) transform(x[i][0][b], x[i][1][b], x[i][2][b], x[i][3][b]);
    }
    if constexpr (kHeight == kSide)
      for (std::size_t j = 0; j < kSide; ++j)
        for (std::size_t b = 0; b < kGroup; ++b) transform(x[0][j][b], x[1][j][b], x[2][j][b], x[3][j][b]);
    for (std::size_t i = 0; i < kHeight; ++i) {
      L* to = level + first + i * grid.cols;
      for (std::size_t b = 0; b < kGroup; ++b)
        for (std::size_t j = 0; j < kSide; ++j) to[kSide * b + j] = level_of(x[i][j][b]);
    }
  }
  FL_HD void transform_part(std::size_t first, std::size_t height, std::size_t width) const {
    double x[kSide * kSide] = {};
    for (std::size_t i = 0; i < height; ++i)
      for (std::size_t j = 0; j < width; ++j) x[kSide * i + j] = static_cast<double>(p[first + i * grid.cols + j]);
    for (std::size_t i = 0; i < height; ++i) transform(x + kSide * i, 1, width);
    if (kHeight == kSide)
      for (std::size_t j = 0; j < width; ++j) transform(x + j, kSide, height);
    for (std::size_t i = 0; i < height; ++i)
      for (std::size_t j = 0; j < width; ++j) level[first + i * grid.cols + j] = level_of(x[kSide * i + j]);
  }
};

// Writes the numbers for which levels stand.
template <class T, class L, std::size_t kHeight>
struct InvertGroup {
  const L* level;
  T* c;
  BlockGrid grid;
  double step;  // h
  [[nodiscard]] FL_HD double coefficient(L l) const { return times(static_cast<double>(static_cast<std::int32_t>(l)), step); }

  FL_HD void operator()(std::size_t index) const {
    visit_group<kHeight>(
        grid, index, [this](std::size_t first) { invert_whole(first); },
        [this](std::size_t first, std::size_t height, std::size_t width) { invert_part(first, height, width); });
  }
  FL_HD void invert_whole(std::size_t first) const {
    double x[kHeight][kSide][kGroup];
    for (std::size_t i = 0; i < kHeight; ++i) {
      const L* from = level + first + i * grid.cols;
      for (std::size_t b = 0; b < kGroup; ++b)
        for (std::size_t j = 0; j < kSide; ++j) x[i][j][b] = coefficient(from[kSide * b + j]);
    }
    if constexpr (kHeight == kSide)
      for (std::size_t j = 0; j < kSide; ++j)
        for (std::size_t b = 0; b < kGroup; ++b) invert(x[0][j][b], x[1][j][b], x[2][j][b], x[3][j][b]);
    for (std::size_t i = 0; i < kHeight; ++i) {
      T* to = c + first + i * grid.cols;
      for (std::size_t b = 0; b < kGroup; ++b) invert(x[i][0][b], x[i][1][b], x[i][2][b], x[i][3][b]);
      for (std::size_t b = 0; b < kGroup; ++b)
        for (std::size_t j = 0; j < kSide; ++j) to[kSide * b + j] = static_cast<T>(x[i][j][b]);
    }
  }
  FL_HD void invert_part(std::size_t first, std::size_t height, std::size_t width) const {
    double x[kSide * kSide] = {};
    for (std::size_t i = 0; i < height; ++i)
      for (std::size_t j = 0; j < width; ++j) x[kSide * i + j] = coefficient(level[first + i * grid.cols + j]);
    if (kHeight == kSide)
      for (std::size_t j = 0; j < width; ++j) invert(x + j, kSide, height);
    for (std::size_t i = 0; i < height; ++i) invert(x + kSide * i, 1, width);
    for (std::size_t i = 0; i < height; ++i)
      for (std::size_t j = 0; j < width; ++j) c[first + i * grid.cols + j] = static_cast<T>(x[kSide * i + j]);
  }
};

template <class T>
struct WriteStateOfBlocks {
  StateWrite<T> state;  // of one client
  std::size_t begin;
  const T *p, *c;
  FL_HD void operator()(std::size_t j) const { state.out.row(0)[begin + j] = state.rule == StateRule::residual ? p[j] - c[j] : T(0); }
};

// Returns numbers begin .. begin+count-1 of one client's input as they are in memory, or evaluated.
template <class T>
[[nodiscard]] const T* numbers_of(const Exec& exec, const Affine<T>& input, std::size_t begin, std::size_t count, Workspace::Frame& frame) {
  if constexpr (kThisDevice == Device::cpu)
    if (input.num_terms == 1 && input.coefficient[0] == T(1)) return input.term[0].row(0) + begin;
  T* p = frame.take<T>(count);
  load_vector(exec, part_of(input, begin, count), 0, p);
  return p;
}

// The host works on stripes of whole blocks that stay in its caches. On a GPU a stripe is a segment.
constexpr std::size_t kStripe = kThisDevice == Device::cuda ? std::numeric_limits<std::size_t>::max() / 2 / kSide * kSide : 8192;

// Calls visit(offset in the segment, grid) for its stripes.
template <class Visit>
void for_each_stripe(const BlockGrid& grid, Visit visit) {
  if (grid.rows == 1) {
    for (std::size_t col = 0; col < grid.cols; col += kStripe) visit(col, BlockGrid{1, std::min(kStripe, grid.cols - col)});
    return;
  }
  const std::size_t rows = std::max(kSide, kStripe / grid.cols / kSide * kSide);
  for (std::size_t row = 0; row < grid.rows; row += rows) visit(row * grid.cols, BlockGrid{std::min(rows, grid.rows - row), grid.cols});
}

template <class T>
class Zfp final : public ErrorBounded<T> {
 public:
  explicit Zfp(const ZfpOptions& options) : ErrorBounded<T>("zfp", options.error_bound), block_(options.block) {}

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>& context, const Scope& scope) const override {
    return all_known_but(KnownLevels::Travels::top, level_format(this->bound_at(context.steps, scope)));
  }

  void reconstruct(const Exec& exec, const CompressContext<T>& context, const Scope& scope,
                   std::span<Payload<T>* const> messages) const override {
    const double bound = this->bound_at(context.steps, scope);
    for (Payload<T>* message : messages)
      if (has_all_levels(*message, scope)) write_entries(exec, Affine<T>{}, scope, bound, *message, StateWrite<T>{}, *message);
  }

 protected:
  // Both transforms take four products and sums for each entry, in one direction or two.
  [[nodiscard]] EntryCost level_cost() const override {
    const double transforms = block_ == TransformBlock::square ? 4 : 2;
    return costs::levels(16, costs::Rounding::nearest) + EntryCost{2, 8 * transforms};
  }
  [[nodiscard]] double norm_bound(const Scope& scope) const override {
    double squares = 0;
    for (const Segment& segment : scope.segments) {
      const double factor = (1 - kBoundMargin<T>) / gain_of(segment) + kBoundMargin<T>;
      squares += static_cast<double>(segment.size()) * factor * factor;
    }
    return std::sqrt(squares);
  }

  void send_levels(const Exec& exec, const Affine<T>& input, const Scope& scope, double bound, double most, const StateWrite<T>& state,
                   std::span<Payload<T>* const> messages) const override {
    Payload<T>& message = *messages[0];
    Payload<T>& code = message.code();
    // A coefficient is at most twice the largest number of its line, and four times the one of its square.
    const double largest = std::floor(4 * most / step_of(bound, kLineGain * kLineGain)) + 1;
    open_levels(code, num_compressed(scope), width_of(static_cast<std::int64_t>(largest)));
    write_levels(exec, input, scope, bound, largest, code);
    const std::int32_t top = largest_level(exec, code);
    if (top == 0) {
      message.clear(message.length);
      return send_nothing(exec, input, scope, state, messages);
    }
    code.level_format = symmetric_levels(level_format(bound), top);
    write_entries(exec, input, scope, bound, code, state, message);
  }

 private:
  [[nodiscard]] bool is_square(const Segment& segment) const {
    return block_ == TransformBlock::square && segment.rows > 1 && segment.cols > 1;
  }
  [[nodiscard]] double gain_of(const Segment& segment) const { return is_square(segment) ? kLineGain * kLineGain : kLineGain; }
  [[nodiscard]] BlockGrid grid_of(const Segment& segment) const {
    return is_square(segment) ? BlockGrid{segment.rows, segment.cols} : BlockGrid{1, segment.size()};
  }
  [[nodiscard]] static double step_of(double bound, double gain) { return 2 * bound * (1 - kBoundMargin<T>) / gain; }
  // The steps of lines. Steps of squares follow from the same bound.
  [[nodiscard]] static LevelFormat level_format(double bound) { return {.unit = step_of(bound, kLineGain), .has_scale = false}; }

  void write_levels(const Exec& exec, const Affine<T>& input, const Scope& scope, double bound, double largest, Payload<T>& code) const {
    with_level_type(code.level_width, [&]<class L>(L) {
      L* level = code.template levels<L>();
      for (const Segment& segment : scope.segments) {
        const double inverse = 1 / step_of(bound, gain_of(segment));
        for_each_stripe(grid_of(segment), [&](std::size_t offset, const BlockGrid& grid) {
          Workspace::Frame frame(*exec.workspace);
          const std::size_t count = grid.rows * grid.cols;
          const T* p = numbers_of(exec, input, segment.begin + offset, count, frame);
          if (is_square(segment))
            for_each(exec, grid.groups(kSide), TransformGroup<T, L, kSide>{p, level + offset, grid, inverse, largest});
          else
            for_each(exec, grid.groups(1), TransformGroup<T, L, 1>{p, level + offset, grid, inverse, largest});
        });
        level += segment.size();
      }
    });
  }

  // Writes the entries that the levels of `code` represent, and the state if it has a rule. `message` may be `code` itself.
  void write_entries(const Exec& exec, const Affine<T>& input, const Scope& scope, double bound, const Payload<T>& code,
                     const StateWrite<T>& state, Payload<T>& message) const {
    message.place_on(kThisDevice);
    message.value.resize_discard(code.num_sent);
    with_level_type(code.level_width, [&]<class L>(L) {
      const L* level = code.template levels<L>();
      T* c = message.value.data();
      for (const Segment& segment : scope.segments) {
        const double step = step_of(bound, gain_of(segment));
        for_each_stripe(grid_of(segment), [&](std::size_t offset, const BlockGrid& grid) {
          if (is_square(segment))
            for_each(exec, grid.groups(kSide), InvertGroup<T, L, kSide>{level + offset, c + offset, grid, step});
          else
            for_each(exec, grid.groups(1), InvertGroup<T, L, 1>{level + offset, c + offset, grid, step});
          write_state(exec, input, segment.begin + offset, grid.rows * grid.cols, c + offset, state);
        });
        level += segment.size();
        c += segment.size();
      }
    });
    close_values(message);
  }

  // Writes the state of numbers begin .. begin+count-1 after c was sent for them.
  static void write_state(const Exec& exec, const Affine<T>& input, std::size_t begin, std::size_t count, const T* c,
                          const StateWrite<T>& state) {
    if (state.rule == StateRule::none) return;
    Workspace::Frame frame(*exec.workspace);
    const T* p = state.rule == StateRule::residual ? numbers_of(exec, input, begin, count, frame) : c;
    for_each(exec, count, WriteStateOfBlocks<T>{state, begin, p, c});
  }

  TransformBlock block_;
};

FL_REGISTER_PART(Compressor, Zfp, ZfpOptions,
                 (PartInfo{"compressor", "zfp", "cosine transforms of blocks, rounded to a grid; absolute, with a bound for each entry",
                           "Lindstrom, Fixed-rate compressed floating-point arrays, IEEE TVCG 2014"}));
const bool kZfpDiffers = add_difference({"compressor", "zfp",
                                         "the publication lifts integers and codes their bit planes; here a cosine transform and an "
                                         "entropy code do it, and edges are not padded"});

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
