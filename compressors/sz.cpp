// SZ-like compression: numbers are rounded to a grid, each is predicted from its neighbours, and the differences are entropy-coded.
//
//   t = 2 eb (1 - m),   q_j = the integer nearest to x_j / t, half to even,   C(x)_j = q_j t           (m, R:
//   compressors/support/error_bound.hpp) message: d_j = q_j - prediction, from which the receiver computes q
//     predictor = "none"       prediction 0
//     predictor = "previous"   q_(j-1) of the same segment, 0 for its first number
//     predictor = "plane"      q[i-1,j] + q[i,j-1] - q[i-1,j-1] of a matrix, 0 for numbers outside it; "previous" for other segments
//
// Absolute: |C(x)_j - x_j| <= eb for every entry, hence |C(x)-x|^2 <= kappa^2 = d eb^2 for every draw. The predictor changes the message
// alone. Proof: let u be the unit roundoff of T (2^-24 or 2^-53). t is rounded to T, so t <= 2 eb (1-m)(1+u). x_j / t is computed in double
// with two roundings and then rounded to an integer, so |q_j t - x_j| <= t/2 + 2^-51 |x_j|. The product q_j t is rounded once, by at most
// u (R+1) eb. With |x_j| <= R eb and u R <= m/2 the sum is at most eb (1 - m + u + 2^-51 R + m/2 + u) < eb.
// kappa does not depend on x: error feedback around C keeps an error of at most kappa for all gradients, as around hard_threshold.
// rule = "error_bound": eb is in units of the input. rule = "lambda": it is in units of the gradient, as for absolute_rounding.
//
// Rounding precedes prediction (dual quantisation of cuSZ), so that predictions are exact in integers and no entry waits for another.
// |q_j| <= R/(2-2m) + 1, hence |d_j| < 2^18 in float32 and 2^28 in float64: all are exact in T. Bits: differences in the width of the
// largest one, or in the codec's entropy code if that is shorter. Smooth inputs have small differences. If numbers are independent of their
// neighbours, differences have twice the variance of q and take half a bit more ("plane": one bit); "none" suits them better. Published
// bits: the differences at their width. SZ predicts from decoded numbers, by regression as well, and codes with Huffman and a dictionary.
// S. Di, F. Cappello, "Fast error-bounded lossy HPC data compression with SZ", IPDPS 2016; D. Tao, S. Di, Z. Chen, F. Cappello,
// "Significantly improving lossy compression for scientific data sets based on multidimensional prediction and error-controlled
// quantization", IPDPS 2017; J. Tian et al., "cuSZ: an efficient GPU-based error-bounded lossy compression framework for scientific data",
// PACT 2020.
// Group: quantiser
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/error_bound.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/differences.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

enum class LorenzoPredictor { none, previous, plane };

struct SzOptions {
  AbsoluteScale error_bound;
  LorenzoPredictor predictor = LorenzoPredictor::previous;
};

inline void describe(Schema& s, SzOptions& o) {
  describe_absolute_scale(s, o.error_bound, "error_bound", "eb, the largest error of an entry");
  s.choice("predictor", o.predictor,
           {{LorenzoPredictor::none, "none"}, {LorenzoPredictor::previous, "previous"}, {LorenzoPredictor::plane, "plane"}},
           "the prediction of a number: 0, the number before it, or the plane through three neighbours in its matrix");
}
inline void validate(const SzOptions& o, Problems& problems) { validate_absolute_scale("error_bound", o.error_bound, problems); }

namespace FL_DEVICE_NS {
namespace {

// The largest number determines the range of levels. A number that another thread has changed since gets the nearest one in the range.
template <class T>
struct NearestOfGrid {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  double inverse, largest;
  static constexpr bool kHasChance = false;
  FL_HD std::int32_t operator()(T p, T, std::uint32_t, std::size_t) const {
    double q = rint(inverse * static_cast<double>(p));
    q = q < largest ? q : largest;  // NaN becomes the largest
    q = q > -largest ? q : -largest;
    return static_cast<std::int32_t>(q);
  }
};

// The numbers of a segment as the predictor sees them. One row: each is predicted by the one before it.
struct LorenzoShape {
  std::size_t rows, cols;
};

// ---- the differences of a segment; q, d: [rows,cols] ----

// Computes d = q - 0, for the first number.
template <class From, class To>
struct FirstDifference {
  const From* q;
  To* d;
  FL_HD void operator()(std::size_t) const { *d = static_cast<To>(*q - From(0)); }
};
// Computes d = q - (the number before it), for the second number of a row and on.
template <class From, class To>
struct RowDifference {
  const From* q;
  To* d;
  FL_HD void operator()(std::size_t j) const { d[j + 1] = static_cast<To>(q[j + 1] - q[j]); }
};
// Computes the differences to the plane, from number (1, 1) on. Those of the first column are wrong and written again.
template <class From, class To>
struct PlaneDifference {
  const From* q;
  To* d;
  std::size_t cols;
  FL_HD void operator()(std::size_t j) const { d[j + cols + 1] = static_cast<To>((q[j + cols + 1] - q[j + cols]) - (q[j + 1] - q[j])); }
};
// Computes the differences of the first column to the row before, from the second row on.
template <class From, class To>
struct ColumnDifference {
  const From* q;
  To* d;
  std::size_t cols;
  FL_HD void operator()(std::size_t i) const { d[(i + 1) * cols] = static_cast<To>(q[(i + 1) * cols] - q[i * cols]); }
};

template <class From, class To>
void write_differences(const Exec& exec, const LorenzoShape& shape, const From* q, To* d) {
  for_each(exec, 1, FirstDifference<From, To>{q, d});
  for_each(exec, shape.cols - 1, RowDifference<From, To>{q, d});
  if (shape.rows == 1) return;
  for_each(exec, (shape.rows - 1) * shape.cols - 1, PlaneDifference<From, To>{q, d, shape.cols});
  for_each(exec, shape.rows - 1, ColumnDifference<From, To>{q, d, shape.cols});
}

// ---- their sums, which are q again; modulo 2^32, because a peer may send anything ----

// A GPU adds pieces of a row at the same time. The host adds a row as one piece.
constexpr std::size_t kSumPiece = kThisDevice == Device::cuda ? 2048 : std::numeric_limits<std::size_t>::max();

struct RowPieces {
  std::size_t cols, per_row;
  explicit RowPieces(std::size_t columns) : cols(columns), per_row((columns - 1) / kSumPiece + 1) {}
  [[nodiscard]] FL_HD std::size_t begin(std::size_t piece) const { return piece / per_row * cols + piece % per_row * kSumPiece; }
  [[nodiscard]] FL_HD std::size_t count(std::size_t piece) const {
    const std::size_t left = cols - piece % per_row * kSumPiece;
    return left < kSumPiece ? left : kSumPiece;
  }
};

template <class L>
struct PieceTotal {
  RowPieces pieces;
  const L* d;
  std::uint32_t* total;  // [rows, pieces of a row]
  FL_HD void operator()(std::size_t piece) const {
    const L* own = d + pieces.begin(piece);
    std::uint32_t sum = 0;
    for (std::size_t j = 0; j < pieces.count(piece); ++j) sum += static_cast<std::uint32_t>(own[j]);
    total[piece] = sum;
  }
};
// Replaces the totals of a row's pieces by the sums of all pieces before.
struct SumsBefore {
  std::size_t per_row;
  std::uint32_t* total;
  FL_HD void operator()(std::size_t row) const {
    std::uint32_t sum = 0;
    for (std::size_t i = row * per_row; i < (row + 1) * per_row; ++i) {
      const std::uint32_t own = total[i];
      total[i] = sum;
      sum += own;
    }
  }
};
template <class L>
struct PieceSums {
  RowPieces pieces;
  const L* d;
  const std::uint32_t* before;  // null: one piece in each row
  std::uint32_t* q;
  FL_HD void operator()(std::size_t piece) const {
    const std::size_t begin = pieces.begin(piece);
    std::uint32_t sum = before != nullptr ? before[piece] : 0;
    for (std::size_t j = begin; j < begin + pieces.count(piece); ++j) q[j] = sum += static_cast<std::uint32_t>(d[j]);
  }
};

// Adds to each number the one above it, row by row, in a group of columns.
struct ColumnSums {
  static constexpr std::size_t kColumns = kThisDevice == Device::cuda ? 1 : 256;
  LorenzoShape shape;
  std::uint32_t* q;
  FL_HD void operator()(std::size_t group) const {
    const std::size_t first = group * kColumns, left = shape.cols - first, count = left < kColumns ? left : kColumns;
    for (std::size_t i = 1; i < shape.rows; ++i) {
      std::uint32_t* row = q + i * shape.cols + first;
      for (std::size_t j = 0; j < count; ++j) row[j] += *(row + j - shape.cols);
    }
  }
};

template <class L>
void write_sums(const Exec& exec, const LorenzoShape& shape, const L* d, std::uint32_t* q) {
  Workspace::Frame frame(*exec.workspace);
  const RowPieces pieces(shape.cols);
  const std::size_t count = shape.rows * pieces.per_row;
  std::uint32_t* before = nullptr;
  if (pieces.per_row > 1) {
    before = frame.take<std::uint32_t>(count);
    for_each(exec, count, PieceTotal<L>{pieces, d, before});
    for_each(exec, shape.rows, SumsBefore{pieces.per_row, before});
  }
  for_each(exec, count, PieceSums<L>{pieces, d, before, q});
  if (shape.rows > 1) for_each(exec, (shape.cols - 1) / ColumnSums::kColumns + 1, ColumnSums{shape, q});
}

// Computes the numbers of levels by the expression of level_value.
template <class T>
struct NumbersOfGrid {
  const std::uint32_t* q;
  T step, *out;
  FL_HD void operator()(std::size_t j) const { out[j] = static_cast<T>(static_cast<std::int32_t>(q[j])) * step; }
};

template <class T>
class Sz final : public ErrorBounded<T> {
 public:
  explicit Sz(const SzOptions& options) : ErrorBounded<T>("sz", options.error_bound), predictor_(options.predictor) {}

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>& context, const Scope& scope) const override {
    return all_known_but(KnownLevels::Travels::top, level_format(this->bound_at(context.steps, scope)));
  }

  void reconstruct(const Exec& exec, const CompressContext<T>& context, const Scope& scope,
                   std::span<Payload<T>* const> messages) const override {
    if (predictor_ == LorenzoPredictor::none) return;
    const T step = static_cast<T>(level_format(this->bound_at(context.steps, scope)).unit);
    for (Payload<T>* message : messages)
      if (has_all_levels(*message, scope)) add_up(exec, scope, step, *message);
  }

 protected:
  // Levels, and their differences to the prediction, which takes one sum or three.
  [[nodiscard]] EntryCost level_cost() const override {
    const EntryCost levels = costs::levels(16, costs::Rounding::nearest);
    if (predictor_ == LorenzoPredictor::none) return levels;
    return levels + EntryCost{1.5, predictor_ == LorenzoPredictor::plane ? 3.0 : 1.0};
  }
  [[nodiscard]] double norm_bound(const Scope& scope) const override { return std::sqrt(compressed_size(scope)); }

  void send_levels(const Exec& exec, const Affine<T>& input, const Scope& scope, double bound, double most, const StateWrite<T>& state,
                   std::span<Payload<T>* const> messages) const override {
    const LevelFormat grid = level_format(bound);
    const double inverse = 1 / grid.unit, largest = std::rint(inverse * most);
    if (largest == 0) return send_nothing(exec, input, scope, state, messages);
    const auto top = static_cast<std::int32_t>(largest);
    quantize_rows(exec, input, scope, symmetric_levels(grid, top), width_of(top), static_cast<const T*>(nullptr),
                  NearestOfGrid<T>{inverse, largest}, std::span<const RandomStream>{}, state, messages);
    if (predictor_ != LorenzoPredictor::none) write_code(exec, scope, grid, top, *messages[0]);
  }

 private:
  [[nodiscard]] static LevelFormat level_format(double bound) {
    return {.unit = static_cast<double>(static_cast<T>(2 * bound * (1 - kBoundMargin<T>))), .has_scale = false};
  }
  [[nodiscard]] LorenzoShape shape_of(const Segment& segment) const {
    if (predictor_ == LorenzoPredictor::plane && segment.rows > 1 && segment.cols > 1) return {segment.rows, segment.cols};
    return {1, segment.size()};
  }

  // Writes the differences of the message's levels, which are at most four times as large as these.
  void write_code(const Exec& exec, const Scope& scope, const LevelFormat& grid, std::int32_t top, Payload<T>& message) const {
    Payload<T>& code = message.code();
    open_levels(code, message.num_sent, width_of(std::int64_t{predictor_ == LorenzoPredictor::plane ? 4 : 2} * top));
    with_level_type(message.level_width, [&]<class From>(From) {
      with_level_type(code.level_width, [&]<class To>(To) {
        if constexpr (sizeof(To) >= sizeof(From)) {
          std::size_t offset = 0;
          for (const Segment& segment : scope.segments) {
            write_differences(exec, shape_of(segment), message.template levels<From>() + offset, code.template levels<To>() + offset);
            offset += segment.size();
          }
        }
      });
    });
    code.level_format = symmetric_levels(grid, largest_level(exec, code));
  }

  // Replaces received differences by the numbers for which they stand.
  void add_up(const Exec& exec, const Scope& scope, T step, Payload<T>& message) const {
    message.value.resize_discard(message.num_sent);
    with_level_type(message.level_width, [&]<class L>(L) {
      std::size_t offset = 0;
      for (const Segment& segment : scope.segments) {
        Workspace::Frame frame(*exec.workspace);
        auto* q = frame.take<std::uint32_t>(segment.size());
        write_sums(exec, shape_of(segment), message.template levels<L>() + offset, q);
        for_each(exec, segment.size(), NumbersOfGrid<T>{q, step, message.value.data() + offset});
        offset += segment.size();
      }
    });
    close_values(message);
  }

  LorenzoPredictor predictor_;
};

FL_REGISTER_PART(Compressor, Sz, SzOptions,
                 (PartInfo{"compressor", "sz", "rounding to a grid, and differences to a prediction; absolute, with a bound for each entry",
                           "Di, Cappello, Fast error-bounded lossy HPC data compression with SZ, IPDPS 2016"}));
const bool kSzDiffers = add_difference({"compressor", "sz",
                                        "the publications predict from decoded numbers, by regression as well, and use Huffman codes; "
                                        "here numbers are rounded before, as in cuSZ, and rANS codes them"});

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
