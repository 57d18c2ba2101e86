#include "clients/nn/window_product.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "clients/nn/register_tile.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl::nn {

namespace {

constexpr std::size_t kTermsOfBlock = 288;       // products of a sum between two visits to memory
constexpr std::size_t kCopiedBytes = 384 << 10;  // of copied images, in the second-level cache beside weights and outputs
constexpr std::size_t kVectorsOfTurn = 96;       // vectors of outputs that share a row of tiles' weights

// A copy of a plane: row r is the input's row r*stride + dy, its entry x the input's column x*stride + dx.
struct Copy {
  std::ptrdiff_t dy, dx;
  std::size_t begin, end;  // entries inside the input
};

template <class T>
using Mask = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

// Returns the vector with zeros where the mask has zeros.
template <class T>
[[gnu::always_inline]] inline Vec<T> masked(Vec<T> v, const Mask<T>* mask) {
  typedef Mask<T> Bits __attribute__((vector_size(kVectorBytes)));
  Bits bits;
  std::memcpy(&bits, mask, sizeof bits);
  return (Vec<T>)((Bits)v & bits);
}

// The copies of a plane; for each tap its copy, and how many rows below an output it reads.
struct PlaneCopies {
  Copy* list = nullptr;
  std::uint32_t *of = nullptr, *below = nullptr;
  std::size_t count = 0, most_below = 0;
};

// Blocks of channels and the most channels of one; outputs' rows of a unit, units of an image, images of a unit; numbers of a channel in
// a unit, and units that are copied at once.
struct UnitCut {
  std::size_t blocks = 1, channels = 0;
  std::size_t rows = 0, bands = 1, side = 1;
  std::size_t plane = 0, group = 1;
};

// Masks of shifted planes, `period` vectors of each copy.
template <class T>
struct PlaneShifts {
  bool possible = false;
  std::size_t period = 0;
  Mask<T>* masks = nullptr;
};

// The images of a product as the tiles read them. A unit is a band of rows of an image, or small images with their rows side by side so
// that their outputs fill vectors: [channel, copy, row, image, column].
template <class T>
class Units {
 public:
  Units(Workspace::Frame& frame, const WindowProduct<T>& p, std::size_t B) : p_(p), B_(B), stride_(static_cast<std::ptrdiff_t>(p.stride)) {
    find_copies(frame);
    cut_.blocks = (p.C * p.num_taps + kTermsOfBlock - 1) / kTermsOfBlock;
    cut_.blocks = std::min(cut_.blocks, p.C);
    cut_.channels = (p.C + cut_.blocks - 1) / cut_.blocks;
    cut();
    find_masks(frame);
    x_ = frame.take<T>(cut_.group * cut_.channels * cut_.plane + 2 * kLanes<T>);
    offset_ = frame.take<std::uint32_t>(cut_.channels * p.num_taps);
    for (std::size_t c = 0, l = 0; c < cut_.channels; ++c)
      for (std::size_t t = 0; t < p.num_taps; ++t, ++l)
        offset_[l] = static_cast<std::uint32_t>(c * cut_.plane + (copies_.of[t] * copy_rows() + copies_.below[t]) * cut_.side * p.OW);
  }

  [[nodiscard]] std::size_t blocks() const { return cut_.blocks; }
  [[nodiscard]] std::size_t first_channel(std::size_t block) const { return p_.C * block / cut_.blocks; }
  [[nodiscard]] std::size_t count() const { return (B_ + cut_.side - 1) / cut_.side * cut_.bands; }
  [[nodiscard]] std::size_t group() const { return cut_.group; }
  [[nodiscard]] std::size_t side() const { return cut_.side; }
  [[nodiscard]] std::size_t vectors() const { return (cut_.rows * cut_.side * p_.OW + kLanes<T> - 1) / kLanes<T>; }
  [[nodiscard]] std::size_t place(std::size_t unit) const { return unit * cut_.channels * cut_.plane; }  // of a unit of the group
  // Returns whether vectors of outputs are whole and lie in memory as they are computed.
  [[nodiscard]] bool is_direct() const {
    return cut_.side == 1 && p_.column == 1 && p_.row == p_.OW && p_.OH % cut_.rows == 0 && cut_.rows * p_.OW % kLanes<T> == 0;
  }
  [[nodiscard]] const T* x() const { return x_; }
  [[nodiscard]] const std::uint32_t* offset() const { return offset_; }

  [[nodiscard]] std::size_t first_image(std::size_t unit) const { return unit / cut_.bands * cut_.side; }
  [[nodiscard]] std::size_t images(std::size_t unit) const { return std::min(cut_.side, B_ - first_image(unit)); }
  [[nodiscard]] std::size_t first_row(std::size_t unit) const { return unit % cut_.bands * cut_.rows; }
  [[nodiscard]] std::size_t rows(std::size_t unit) const { return std::min(cut_.rows, p_.OH - first_row(unit)); }
  [[nodiscard]] std::size_t output(std::size_t unit) const { return first_image(unit) * p_.image + first_row(unit) * p_.row; }

  // Copies channels [first, last) of the units from `begin` on.
  void copy(const T* in, std::size_t begin, std::size_t units, std::size_t first, std::size_t last) {
    for (std::size_t u = 0; u < units; ++u)
      for (std::size_t c = first; c < last; ++c) copy_plane(in, begin + u, c, x_ + place(u) + (c - first) * cut_.plane);
  }

 private:
  [[nodiscard]] std::size_t copy_rows() const { return cut_.rows + copies_.most_below; }

  void find_copies(Workspace::Frame& frame) {
    copies_.list = frame.take<Copy>(p_.num_taps);
    copies_.of = frame.take<std::uint32_t>(p_.num_taps);
    copies_.below = frame.take<std::uint32_t>(p_.num_taps);
    std::ptrdiff_t top = p_.taps[0].dy;
    for (std::size_t t = 0; t < p_.num_taps; ++t) top = std::min(top, p_.taps[t].dy);
    for (std::size_t t = 0; t < p_.num_taps; ++t) {
      const std::ptrdiff_t dx = p_.taps[t].dx, down = p_.taps[t].dy - top, dy = top + down % stride_;
      copies_.below[t] = static_cast<std::uint32_t>(down / stride_);
      copies_.most_below = std::max<std::size_t>(copies_.most_below, copies_.below[t]);
      const Copy* found = std::find_if(copies_.list, copies_.list + copies_.count, [&](const Copy& c) { return c.dx == dx && c.dy == dy; });
      copies_.of[t] = static_cast<std::uint32_t>(found - copies_.list);
      if (copies_.of[t] < copies_.count) continue;
      const auto W = static_cast<std::ptrdiff_t>(p_.W), OW = static_cast<std::ptrdiff_t>(p_.OW);
      const std::ptrdiff_t begin = std::min(dx < 0 ? (-dx + stride_ - 1) / stride_ : 0, OW);
      const std::ptrdiff_t end = W - dx <= 0 ? 0 : std::min((W - dx - 1) / stride_ + 1, OW);
      copies_.list[copies_.count++] = {dy, dx, static_cast<std::size_t>(begin), static_cast<std::size_t>(std::max(begin, end))};
    }
  }
  // Chooses bands of rows, images side by side, and how many units are copied at once.
  void cut() {
    const std::size_t pixels = p_.OH * p_.OW;
    cut_.rows = p_.OH;
    while (pixels < kLanes<T> && cut_.side * pixels % kLanes<T> != 0) ++cut_.side;
    const std::size_t room = kCopiedBytes / sizeof(T) / cut_.channels;
    const auto size = [&] { return copies_.count * copy_rows() * cut_.side * p_.OW; };
    if (size() > 2 * room) {
      const std::size_t fitting = room / (copies_.count * p_.OW);
      cut_.rows = fitting > copies_.most_below ? fitting - copies_.most_below : 1;
      cut_.bands = (p_.OH + cut_.rows - 1) / cut_.rows;
      cut_.rows = (p_.OH + cut_.bands - 1) / cut_.bands;
      while (cut_.rows * p_.OW % kLanes<T> != 0 && cut_.rows < p_.OH && cut_.rows % 16 != 0) ++cut_.rows;
      cut_.bands = (p_.OH + cut_.rows - 1) / cut_.rows;
    }
    cut_.plane = size();
    cut_.group = std::clamp<std::size_t>(room / cut_.plane, 1, count());
  }
  // Masks of the entries inside the input, for each copy, as often as rows and vectors need to begin together again.
  void find_masks(Workspace::Frame& frame) {
    shifts_.possible = stride_ == 1 && cut_.side == 1 && p_.OW == p_.W;
    for (std::size_t copy = 0; copy < copies_.count; ++copy)
      shifts_.possible = shifts_.possible && static_cast<std::size_t>(std::abs(copies_.list[copy].dx)) <= p_.W;
    if (!shifts_.possible) return;
    shifts_.period = p_.W / std::gcd(p_.W, kLanes<T>);
    shifts_.masks = frame.take<Mask<T>>(copies_.count * shifts_.period * kLanes<T>);
    for (std::size_t copy = 0; copy < copies_.count; ++copy)
      for (std::size_t i = 0; i < shifts_.period * kLanes<T>; ++i) {
        const std::size_t x = i % p_.W;
        shifts_.masks[copy * shifts_.period * kLanes<T> + i] =
            x >= copies_.list[copy].begin && x < copies_.list[copy].end ? ~Mask<T>(0) : Mask<T>(0);
      }
  }
  // The same as copy_plane() where rows of the copies are as long as those of the input: a shift of whole planes, without the entries that
  // come from the neighbouring row. The input's first and last plane would be read past their ends.
  void shift_plane(const T* plane, std::size_t unit, T* to) const {
    const auto H = static_cast<std::ptrdiff_t>(p_.H), rows = static_cast<std::ptrdiff_t>(copy_rows());
    for (std::size_t copy = 0; copy < copies_.count; ++copy, to += copy_rows() * p_.OW) {
      const std::ptrdiff_t y = static_cast<std::ptrdiff_t>(first_row(unit)) + copies_.list[copy].dy;
      const auto first = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(-y, 0, rows));
      const auto last = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(H - y, static_cast<std::ptrdiff_t>(first), rows));
      std::fill_n(to, first * p_.OW, T(0));
      std::fill_n(to + last * p_.OW, (copy_rows() - last) * p_.OW, T(0));
      if (first == last) continue;
      const T* from = plane + (y + static_cast<std::ptrdiff_t>(first)) * static_cast<std::ptrdiff_t>(p_.W) + copies_.list[copy].dx;
      const Mask<T>* masks = shifts_.masks + copy * shifts_.period * kLanes<T>;
      T* out = to + first * p_.OW;
      const std::size_t count = (last - first) * p_.OW;
      std::size_t j = 0, m = 0;
      for (; j + kLanes<T> <= count; j += kLanes<T>) {
        store(out + j, masked<T>(load(from + j), masks + m));
        m = m + kLanes<T> == shifts_.period * kLanes<T> ? 0 : m + kLanes<T>;
      }
      for (; j < count; ++j, ++m) out[j] = masks[m] != 0 ? from[j] : T(0);
    }
  }
  void copy_plane(const T* in, std::size_t unit, std::size_t channel, T* to) const {
    const std::size_t number = first_image(unit) * p_.C + channel;
    if (shifts_.possible && number > 0 && number + 1 < B_ * p_.C) return shift_plane(in + number * p_.H * p_.W, unit, to);
    const auto H = static_cast<std::ptrdiff_t>(p_.H), W = static_cast<std::ptrdiff_t>(p_.W);
    const std::size_t first = first_image(unit), count = images(unit);
    for (std::size_t copy = 0; copy < copies_.count; ++copy)
      for (std::size_t r = 0; r < copy_rows(); ++r) {
        const std::ptrdiff_t y = static_cast<std::ptrdiff_t>(first_row(unit) + r) * stride_ + copies_.list[copy].dy;
        for (std::size_t i = 0; i < cut_.side; ++i, to += p_.OW) {
          if (i >= count || y < 0 || y >= H) {
            std::fill_n(to, p_.OW, T(0));
            continue;
          }
          const std::ptrdiff_t plane = static_cast<std::ptrdiff_t>((first + i) * p_.C + channel);
          copy_row(copies_.list[copy], in + (plane * H + y) * W, to);
        }
      }
  }
  void copy_row(const Copy& copy, const T* from, T* to) const {
    for (std::size_t x = 0; x < copy.begin; ++x) to[x] = T(0);
    from += copy.dx;
    if (stride_ == 1) {
      std::copy_n(from + copy.begin, copy.end - copy.begin, to + copy.begin);
    } else {
      for (std::size_t x = copy.begin; x < copy.end; ++x) to[x] = from[static_cast<std::ptrdiff_t>(x) * stride_];
    }
    for (std::size_t x = copy.end; x < p_.OW; ++x) to[x] = T(0);
  }

  const WindowProduct<T>& p_;
  std::size_t B_;
  std::ptrdiff_t stride_;
  PlaneCopies copies_;
  UnitCut cut_;
  PlaneShifts<T> shifts_;
  T* x_ = nullptr;
  std::uint32_t* offset_ = nullptr;
};

// Weights as tiles read them: blocks of channels, in each the tiles' rows of outputs, [channel, tap, row].
template <class T>
T* pack_weights(Workspace::Frame& frame, const WindowProduct<T>& p, const Units<T>& units, const T* w) {
  T *packed = frame.take<T>(p.O * p.C * p.num_taps), *to = packed;
  for (std::size_t block = 0; block < units.blocks(); ++block)
    evenly<kTileRows>(p.O, [&]<int kR>(std::size_t first) {
      for (std::size_t c = units.first_channel(block); c < units.first_channel(block + 1); ++c)
        for (std::size_t t = 0; t < p.num_taps; ++t, to += kR) {
          const T* from = w + first * p.w_output + c * p.w_input + p.taps[t].weight;
#pragma GCC unroll 8
          for (int r = 0; r < kR; ++r) to[r] = from[static_cast<std::size_t>(r) * p.w_output];
        }
    });
  return packed;
}

// From raw [O, vectors] of some units to where outputs belong.
template <class T>
void place_outputs(const WindowProduct<T>& p, const Units<T>& units, std::size_t begin, std::size_t count, const T* raw, T* out) {
  const std::size_t length = units.vectors() * kLanes<T>, side = units.side();
  for (std::size_t u = 0; u < count; ++u)
    for (std::size_t i = 0; i < units.images(begin + u); ++i)
      for (std::size_t o = 0; o < p.O; ++o) {
        T* to = out + units.output(begin + u) + i * p.image + o * p.plane;
        const T* from = raw + (o * count + u) * length + i * p.OW;
        for (std::size_t y = 0; y < units.rows(begin + u); ++y)
          for (std::size_t x = 0; x < p.OW; ++x) to[y * p.row + x * p.column] = from[y * side * p.OW + x];
      }
}

}  // namespace

template <class T>
void multiply_windows(const Exec& exec, const WindowProduct<T>& p, std::size_t B, const T* w, const T* start, const T* in, T* out) {
  if (B == 0) return;
  Workspace::Frame frame(*exec.workspace);
  Units<T> units(frame, p, B);
  const T* packed = pack_weights(frame, p, units, w);
  const bool direct = units.is_direct();
  const std::size_t most = units.group() * units.vectors();
  T* raw = direct ? nullptr : frame.take<T>(p.O * most * kLanes<T>);
  auto *at = frame.take<std::size_t>(most), *to = frame.take<std::size_t>(most);
  for (std::size_t begin = 0; begin < units.count(); begin += units.group()) {
    const std::size_t count = std::min(units.group(), units.count() - begin), vectors = count * units.vectors();
    for (std::size_t v = 0; v < vectors; ++v) {
      const std::size_t unit = v / units.vectors(), entry = v % units.vectors() * kLanes<T>;
      at[v] = units.place(unit) + entry;
      to[v] = direct ? units.output(begin + unit) + entry : v * kLanes<T>;
    }
    const T* weights = packed;
    for (std::size_t block = 0; block < units.blocks(); ++block) {
      const std::size_t first = units.first_channel(block), last = units.first_channel(block + 1), terms = (last - first) * p.num_taps;
      units.copy(in, begin, count, first, last);
      for (std::size_t v = 0; v < vectors; v += kVectorsOfTurn)
        evenly<kTileRows>(p.O, [&]<int kR>(std::size_t o) {
          const std::size_t row = direct ? p.plane : vectors * kLanes<T>;
          register_tiles<T, kR>({terms, weights + o * terms, units.x(), units.offset()}, std::min(kVectorsOfTurn, vectors - v), at + v,
                                {(direct ? out : raw) + o * row, row, block > 0, start == nullptr ? nullptr : start + o}, to + v);
        });
      weights += p.O * terms;
    }
    if (!direct) place_outputs(p, units, begin, count, raw, out);
  }
}

template void multiply_windows(const Exec&, const WindowProduct<float>&, std::size_t, const float*, const float*, const float*, float*);
template void multiply_windows(const Exec&, const WindowProduct<double>&, std::size_t, const double*, const double*, const double*,
                               double*);

}  // namespace fl::nn
