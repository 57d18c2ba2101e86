// Tiles of matrix products (tiled_product.cuh). A block of threads computes a tile of one client's C from tiles of A and B in shared
// memory, while the next ones are copied there.
#pragma once

#include <math.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "clients/learning/device_room.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/instructions.cuh"

namespace fl::cuda::tiles {

constexpr unsigned kDepth = 16, kPart = kSumPart;
static_assert(kPart % (2 * kDepth) == 0);

// clients x parts products. The inner dimension of product k is part k % parts of the inner dimension of client k / parts; with one part it
// is the whole.
struct ProductShape {
  std::size_t clients;
  std::uint32_t m, n, d, parts = 1;
  [[nodiscard]] FL_HD std::uint32_t across(unsigned cols) const { return (n + cols - 1) / cols; }
  [[nodiscard]] FL_HD std::size_t tiles(unsigned rows, unsigned cols) const {
    return clients * parts * across(cols) * ((m + rows - 1) / rows);
  }
  // Whether a block adds up several parts of a sum.
  [[nodiscard]] bool adds_parts() const { return parts == 1 && d > kPart; }
};

// A tile of product k, and the range of the inner dimension that it sums over.
struct TilePosition {
  std::size_t k, client;
  std::uint32_t row, col, begin, end;
  __device__ TilePosition(const ProductShape& shape, unsigned rows, unsigned cols, std::size_t number) {
    const std::size_t across = shape.across(cols), per_product = across * ((shape.m + rows - 1) / rows);
    k = number / per_product;
    const auto tile = static_cast<std::uint32_t>(number - k * per_product), own_row = tile / static_cast<std::uint32_t>(across);
    row = own_row * rows;
    col = (tile - own_row * static_cast<std::uint32_t>(across)) * cols;
    client = k / shape.parts;
    begin = static_cast<std::uint32_t>(k - client * shape.parts) * kPart;
    end = shape.parts > 1 && begin + kPart < shape.d ? begin + kPart : shape.d;
  }
};

// Numbers between the rows of a tile, so that depths which are read or written together lie in different banks.
template <class T>
inline constexpr unsigned kPad = 32 / sizeof(T);

// A thread's share of copying tiles of kLines lines and kDepth depths of an operand to shared memory, to tile[depth][place(line, depth)].
// If the operand runs inward, 16 threads copy the depths of a line, and otherwise neighbours copy neighbouring lines.
template <class T, class Operand, unsigned kLines, unsigned kThreads>
class Copier {
  static constexpr bool kInward = Operand::kRunsInward;
  static constexpr unsigned kAtOnce = kThreads / kDepth;  // lines that are copied at the same time, inward
  static constexpr unsigned kOwnLines = !kInward && kThreads < kLines ? kLines / kThreads : 1;
  static constexpr unsigned kCopies = kLines * kDepth / kThreads;
  static_assert(kLines * kDepth % kThreads == 0 && kThreads % kDepth == 0);
  static_assert(kInward ? kLines % kAtOnce == 0 : kLines % kThreads == 0 || kThreads % kLines == 0);
  using View = decltype(std::declval<const Operand&>().open(0));
  using Line = decltype(std::declval<const View&>().line(0));
  using Deep = decltype(std::declval<const View&>().deep(0));

 public:
  static constexpr bool kHasTable = Operand::kTakesLong;
  // Positions that the block computes once for all of its threads, in shared memory: lines, or depths of this tile and of the next one.
  struct Table {
    Line line[kHasTable && kInward ? kLines : 1];
    Deep deep[2][kHasTable && !kInward ? kDepth : 1];
  };
  using Tile = T[kDepth][kLines + kPad<T>];

  __device__ Copier(const Operand& operand, std::size_t client, std::uint32_t first, std::uint32_t lines, Table& table)
      : view_(operand.open(client)), first_(first), lines_(lines - first), table_(table) {
    if constexpr (kHasTable && kInward) {
      for (unsigned i = threadIdx.x; i < kLines; i += kThreads) table_.line[i] = view_.line(first + i);
    } else if constexpr (!kInward) {
      FL_UNROLL
      for (unsigned i = 0; i < kOwnLines; ++i) line_[i] = view_.line(first + line_of(i));
    }
  }
  // Where a line lies in the row of a depth. Inward, lines change places within groups of eight, so that what a warp copies together, 16
  // depths of two lines, goes to different banks.
  [[nodiscard]] static __device__ constexpr unsigned place(unsigned line, unsigned depth) { return line ^ moved(depth); }
  [[nodiscard]] static __device__ constexpr unsigned moved(unsigned depth) { return kInward ? depth / 4 * 2 : 0; }

  // Writes the depths from `base` on into the table. All threads synchronise between this call, or the constructor, and copy().
  __device__ __forceinline__ void find_depths(std::uint32_t base) const {
    if constexpr (kHasTable && !kInward)
      if (threadIdx.x < kDepth) table_.deep[base / kDepth % 2][threadIdx.x] = view_.deep(base + threadIdx.x);
  }
  // Starts to copy the depths from `base` on.
  __device__ __forceinline__ void copy(Tile& tile, std::uint32_t base, std::uint32_t end) const {
    if constexpr (kInward) {
      const unsigned depth = threadIdx.x % kDepth;
      const bool is_deep = base + depth < end;
      const Deep deep = view_.deep(base + depth);
      FL_UNROLL
      for (unsigned i = 0; i < kCopies; ++i) {
        const unsigned line = threadIdx.x / kDepth + i * kAtOnce;
        start(tile, line, depth, inward_line(line), deep, is_deep);
      }
    } else {
      FL_UNROLL
      for (unsigned i = 0; i < kCopies; ++i) {
        const unsigned depth = kThreads < kLines ? i / kOwnLines : threadIdx.x / kLines + i * (kThreads / kLines);
        start(tile, line_of(i % kOwnLines), depth, line_[i % kOwnLines], outward_depth(base, depth), base + depth < end);
      }
    }
  }

 private:
  [[nodiscard]] static __device__ unsigned line_of(unsigned i) { return threadIdx.x % kLines + i * kThreads; }
  [[nodiscard]] __device__ __forceinline__ Line inward_line(unsigned line) const {
    if constexpr (kHasTable)
      return table_.line[line];
    else
      return view_.line(first_ + line);
  }
  [[nodiscard]] __device__ __forceinline__ Deep outward_depth(std::uint32_t base, unsigned depth) const {
    if constexpr (kHasTable)
      return table_.deep[base / kDepth % 2][depth];
    else
      return view_.deep(base + depth);
  }
  __device__ __forceinline__ void start(Tile& tile, unsigned line, unsigned depth, const Line& at_line, const Deep& at_depth,
                                        bool is_deep) const {
    const auto found = view_.find(at_line, at_depth);
    copy_async(&tile[depth][place(line, depth)], found.at, is_deep && line < lines_ && found.is_there);
  }
  View view_;
  std::uint32_t first_, lines_;
  Table& table_;
  Line line_[kOwnLines];
};

// The tiles of A and B on their way through shared memory.
template <class T, class Form, class A, class B>
class Supply {
 public:
  using CopyA = Copier<T, A, Form::kRows, Form::kThreads>;
  using CopyB = Copier<T, B, Form::kCols, Form::kThreads>;
  struct Tiles {
    typename CopyA::Tile a[Form::kStages];
    typename CopyB::Tile b[Form::kStages];
  };
  struct Tables {
    typename CopyA::Table a;
    typename CopyB::Table b;
  };

  __device__ Supply(const A& a, const B& b, const ProductShape& shape, const TilePosition& place, Tiles& tiles, Tables& tables)
      : place_(place),
        a_(a, place.client, place.row, shape.m, tables.a),
        b_(b, place.client, place.col, shape.n, tables.b),
        tiles_(tiles) {}

  // Calls use(a, b) with the tiles of all depths in ascending order, and end_part() after every part of the sums but the last. At the end
  // no thread needs the tiles any more.
  template <class Use, class EndPart>
  __device__ __forceinline__ void for_depths(const Use& use, const EndPart& end_part) const {
    begin();
    unsigned stage = 0;
    for (std::uint32_t base = place_.begin; base < place_.end;) {
      const std::uint32_t end = base + kPart < place_.end ? base + kPart : place_.end;
      for (; base < end; base += kDepth) {
        wait_for_copies<kAhead - 1>();
        __syncthreads();
        start(stage == 0 ? kAhead : stage - 1, base + kAhead * kDepth);
        use(tiles_.a[stage], tiles_.b[stage]);
        stage = stage == kAhead ? 0 : stage + 1;
      }
      if (base < place_.end) end_part();
    }
    wait_for_copies<0>();
    __syncthreads();
  }

 private:
  static constexpr unsigned kAhead = Form::kStages - 1;
  static_assert(kAhead >= 1);
  static constexpr bool kHasTable = CopyA::kHasTable || CopyB::kHasTable;

  __device__ __forceinline__ void begin() const {
    find_depths(place_.begin);
    FL_UNROLL
    for (unsigned stage = 0; stage < kAhead; ++stage) {
      if constexpr (kHasTable) __syncthreads();
      start(stage, place_.begin + stage * kDepth);
    }
  }
  // Starts to copy the depths from `base` on, and writes the table of those behind them.
  __device__ __forceinline__ void start(unsigned stage, std::uint32_t base) const {
    if (base < place_.end) {
      a_.copy(tiles_.a[stage], base, place_.end);
      b_.copy(tiles_.b[stage], base, place_.end);
    }
    end_copies();
    find_depths(base + kDepth);
  }
  __device__ __forceinline__ void find_depths(std::uint32_t base) const {
    a_.find_depths(base);
    b_.find_depths(base);
  }
  const TilePosition& place_;
  CopyA a_;
  CopyB b_;
  Tiles& tiles_;
};

// The sums of a tile in shared memory, on their way to the store.
template <class T, class Form>
struct Found {
  static constexpr unsigned kWidth = Form::kCols + 4;
  T sum[Form::kRows][kWidth];

  // Neighbouring threads take neighbouring columns, and several rows at a time. All threads have synchronised.
  template <class Store>
  __device__ __forceinline__ void store_to(const Store& store, const TilePosition& place, const ProductShape& shape) const {
    constexpr unsigned kAcross = Form::kThreads < Form::kCols ? Form::kThreads : Form::kCols, kDown = Form::kThreads / kAcross;
    constexpr unsigned kAtOnce = 16;  // reads on their way for each thread: memory needs many
    const typename Store::Client to = store.open(place.k);
    const std::uint32_t rows = shape.m - place.row, cols = shape.n - place.col;
    FL_NO_UNROLL
    for (unsigned col = threadIdx.x % kAcross; col < Form::kCols && col < cols; col += kAcross) {
      FL_NO_UNROLL
      for (unsigned first = threadIdx.x / kAcross; first < Form::kRows && first < rows; first += kDown * kAtOnce) {
        typename Store::Before before[kAtOnce];
        const auto for_rows = [&](const auto& use) {
          FL_UNROLL
          for (unsigned i = 0; i < kAtOnce; ++i)
            if (const unsigned row = first + i * kDown; row < Form::kRows && row < rows) use(i, row);
        };
        for_rows([&](unsigned i, unsigned row) { before[i] = to.before(place.row + row, place.col + col); });
        for_rows([&](unsigned i, unsigned row) { to(place.row + row, place.col + col, sum[row][col], before[i]); });
      }
    }
  }
};

// Memory of a block: tiles, and after the last product their sums.
template <class T, class Form, class A, class B>
union Room {
  typename Supply<T, Form, A, B>::Tiles tiles;
  Found<T, Form> found;
};

// A form says how a product is divided. A block computes tiles of rows x cols, and each of its threads own_rows x own_cols of them. Shared
// memory holds `stages` tiles of each operand. `blocks` run on a multiprocessor at the same time, which bounds the registers of a thread.
template <unsigned rows, unsigned cols, unsigned own_rows, unsigned own_cols, unsigned stages, unsigned blocks>
struct ThreadForm {
  static constexpr unsigned kRows = rows, kCols = cols, kOwnRows = own_rows, kOwnCols = own_cols, kStages = stages, kBlocks = blocks;
  static constexpr unsigned kThreads = rows * cols / (own_rows * own_cols);
};

// Neighbouring numbers that a thread reads and writes at once.
template <class T>
struct alignas(16) Pack {
  static constexpr unsigned kNumbers = 16 / sizeof(T);
  T number[kNumbers];
};

// A thread's sums of a tile. The lanes of a warp lie in 4 rows of 8; a lane has groups of four adjacent rows and of four adjacent columns,
// and its groups lie 16 rows and 32 columns apart.
template <class T, class Form>
class OwnSums {
  static constexpr unsigned kLanesDown = 4, kLanesAcross = 8, kGroup = 4, kOwnRows = Form::kOwnRows, kOwnCols = Form::kOwnCols;
  static constexpr unsigned kWarpRows = kLanesDown * kOwnRows, kWarpCols = kLanesAcross * kOwnCols, kWarpsAcross = Form::kCols / kWarpCols;
  static_assert(kOwnRows % kGroup == 0 && kOwnCols % kGroup == 0 && Form::kRows % kWarpRows == 0 && Form::kCols % kWarpCols == 0);

 public:
  __device__ OwnSums() {
    const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    row_ = warp / kWarpsAcross * kWarpRows + lane / kLanesAcross * kGroup;
    col_ = warp % kWarpsAcross * kWarpCols + lane % kLanesAcross * kGroup;
  }
  template <class Supplied>
  __device__ __forceinline__ void add_products(const typename Supplied::CopyA::Tile& a, const typename Supplied::CopyB::Tile& b) {
    FL_UNROLL
    for (unsigned e = 0; e < kDepth; ++e) {
      T left[kOwnRows], right[kOwnCols];
      read<kLanesDown * kGroup>(left, a[e], row_, Supplied::CopyA::moved(e));
      read<kLanesAcross * kGroup>(right, b[e], col_, Supplied::CopyB::moved(e));
      FL_UNROLL
      for (unsigned i = 0; i < kOwnRows; ++i) FL_UNROLL
      for (unsigned j = 0; j < kOwnCols; ++j) sum_[i][j] = fma(left[i], right[j], sum_[i][j]);
    }
  }
  // Adds the sums to total[entry][thread] in shared memory, which would take as many registers again.
  __device__ __forceinline__ void end_part(T* total) {
    for_entries([&](unsigned i, unsigned j) {
      T& to = total[(i * kOwnCols + j) * Form::kThreads + threadIdx.x];
      to = has_total_ ? to + sum_[i][j] : sum_[i][j];
      sum_[i][j] = T(0);
    });
    has_total_ = true;
  }
  __device__ __forceinline__ void put(const T* total, Found<T, Form>& found) {
    if (has_total_)
      for_entries([&](unsigned i, unsigned j) { sum_[i][j] = total[(i * kOwnCols + j) * Form::kThreads + threadIdx.x] + sum_[i][j]; });
    FL_UNROLL
    for (unsigned i = 0; i < kOwnRows; ++i) FL_UNROLL
    for (unsigned j = 0; j < kOwnCols; j += Pack<T>::kNumbers) {
      Pack<T> pack;
      FL_UNROLL
      for (unsigned l = 0; l < Pack<T>::kNumbers; ++l) pack.number[l] = sum_[i][j + l];
      const unsigned row = row_ + i / kGroup * (kLanesDown * kGroup) + i % kGroup;
      const unsigned col = col_ + j / kGroup * (kLanesAcross * kGroup) + j % kGroup;
      *reinterpret_cast<Pack<T>*>(&found.sum[row][col]) = pack;
    }
  }

 private:
  // Reads the lane's groups of a row of a tile, which begin at `line` and lie kApart apart, from where they were moved to.
  template <unsigned kApart, unsigned kNumbers>
  static __device__ __forceinline__ void read(T (&to)[kNumbers], const T* row, unsigned line, unsigned moved) {
    FL_UNROLL
    for (unsigned first = 0; first < kNumbers; first += kGroup) {
      const T* group = row + ((line + first / kGroup * kApart) ^ (moved & kGroup));
      FL_UNROLL
      for (unsigned j = 0; j < kGroup; j += Pack<T>::kNumbers) {
        const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(group + j);
        FL_UNROLL
        for (unsigned l = 0; l < Pack<T>::kNumbers; ++l) to[first + ((j + l) ^ (moved % kGroup))] = pack.number[l];
      }
    }
  }
  template <class Use>
  __device__ __forceinline__ void for_entries(const Use& use) {
    FL_UNROLL
    for (unsigned i = 0; i < kOwnRows; ++i) FL_UNROLL
    for (unsigned j = 0; j < kOwnCols; ++j) use(i, j);
  }
  T sum_[kOwnRows][kOwnCols] = {};
  bool has_total_ = false;
  unsigned row_, col_;
};

// Computes the products, with the sums of a tile in Sums. The block has total [kRows,kCols] beside what is declared here if it adds up
// parts of sums.
template <class T, class Form, class Sums, class A, class B, class Store>
__device__ __forceinline__ void multiply_tile_by_tile(const ProductShape& shape, const A& a, const B& b, const Store& store) {
  using Supplied = Supply<T, Form, A, B>;
  __shared__ __align__(16) Room<T, Form, A, B> room;
  __shared__ typename Supplied::Tables tables;
  FL_SHARED_MEMORY(T, total);
  for (std::size_t number = blockIdx.x; number < shape.tiles(Form::kRows, Form::kCols); number += gridDim.x) {
    const TilePosition place(shape, Form::kRows, Form::kCols, number);
    const Supplied supply(a, b, shape, place, room.tiles, tables);
    Sums sums;
    supply.for_depths([&](const auto& of_a, const auto& of_b) { sums.template add_products<Supplied>(of_a, of_b); },
                      [&] { sums.end_part(total); });
    sums.put(total, room.found);
    __syncthreads();
    room.found.store_to(store, place, shape);
    __syncthreads();  // before the next tiles come into the same memory
  }
}
template <class T, class Form, class A, class B, class Store>
__global__ void __launch_bounds__(Form::kThreads, Form::kBlocks) multiply(ProductShape shape, A a, B b, Store store) {
  multiply_tile_by_tile<T, Form, OwnSums<T, Form>>(shape, a, b, store);
}

// Starts `kernel` for all tiles.
template <class T, class Form, class A, class B, class Store>
void launch_tiles(const Exec& exec, const char* name, void (*kernel)(ProductShape, A, B, Store), const ProductShape& shape, const A& a,
                  const B& b, const Store& store) {
  constexpr std::size_t kTotals = std::size_t{Form::kRows} * Form::kCols * sizeof(T);
  Launch(exec, name, shape.tiles(Form::kRows, Form::kCols), Form::kThreads)
      .with_shared(shape.adds_parts() ? kTotals : 0, sizeof(Room<T, Form, A, B>) + sizeof(typename Supply<T, Form, A, B>::Tables))(
          kernel, shape, a, b, store);
}

// Forms for products of few rows (batches of 10), of some, of many and of few columns (the last layer of a classifier).
using LeastRows = ThreadForm<16, 128, 4, 8, 3, 8>;
using FewRows = ThreadForm<32, 128, 8, 4, 3, 4>;
using ManyRows = ThreadForm<64, 128, 8, 8, 3, 3>;
using FewCols = ThreadForm<32, 32, 4, 4, 3, 8>;
using InDouble = ThreadForm<32, 64, 4, 4, 2, 3>;

// Computes the products in the form for their shape. Every form gives the same bits.
template <class T, class A, class B, class Store>
void multiply_in_full(const Exec& exec, const char* name, const ProductShape& shape, const A& a, const B& b, const Store& store) {
  const auto start = [&]<class Form>() { launch_tiles<T, Form>(exec, name, multiply<T, Form, A, B, Store>, shape, a, b, store); };
  if constexpr (sizeof(T) == sizeof(double))
    start.template operator()<InDouble>();
  else if (shape.n <= FewCols::kCols)
    start.template operator()<FewCols>();
  else if (shape.m <= LeastRows::kRows)
    start.template operator()<LeastRows>();
  else if (shape.m <= FewRows::kRows)
    start.template operator()<FewRows>();
  else
    start.template operator()<ManyRows>();
}

}  // namespace fl::cuda::tiles
