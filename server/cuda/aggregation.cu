// A block owns a part of a tile of positions and goes through the clients in their order. A thread owns two quads of positions: numbers for
// all positions are added there in registers, several clients' numbers being on their way at a time. A list's entries are shared out
// among the threads, which add them to the sums in shared memory: no two of one client meet, and the block waits between clients; what
// the next ones bring is loaded before. Where a part's entries begin in each list is searched for from where they would be if all were
// spread evenly, for a group of clients at a time.
#include <algorithm>
#include <optional>
#include <vector>

#include "fl_core/cuda/check.cuh"
#include "fl_core/cuda/levels.cuh"
#include "fl_core/cuda/opened.cuh"
#include "fl_core/cuda/plan.cuh"
#include "fl_core/payload_segments.hpp"
#include "server/cuda/aggregation.hpp"

namespace fl::cuda {
namespace {

constexpr std::size_t kMostBlocks = 2048;  // which then take several parts; each has its own sums of groups
constexpr int kAddThreads = 128, kQuads = 2;
constexpr std::size_t kPositions = 4 * kQuads * kAddThreads;  // of a part
constexpr std::size_t kParts = kReduceTile / kPositions;      // of a tile
static_assert(kParts * kPositions == kReduceTile && kSumGroup == 2 * kWarp);

// How a message brings its numbers to a part: the levels of a linear map by their width, those of two numbers, those of other maps, lists
// of values and of levels.
enum class Form : std::uint8_t { nothing, vector, linear8, linear16, linear32, binary, levels, list, level_list };

// One client's message on the device, and what it counts for.
template <class T>
struct SentMessage {
  Form form = Form::nothing;
  LevelWidth width = LevelWidth::w8;
  LevelFormat format;
  double weight = 0;
  std::size_t num_sent = 0;
  const std::uint32_t* index = nullptr;
  const T* value = nullptr;  // raw values, or null: levels
  const std::byte* levels = nullptr;
  const T* scale = nullptr;
  const T* excluded = nullptr;  // null: none are sent
};

// The clients' messages, and the sums of groups that a block keeps aside: [blocks, num_levels, kPositions], where there are several.
template <class T>
struct Cohort {
  const SentMessage<T>* message;  // [num_messages]
  std::size_t num_messages;
  double* partial;
  std::size_t num_levels;
};

// Positions of one tile. Tensors that are excluded are the last segments of the plan: their tiles read other numbers.
struct Place {
  std::size_t segment, begin, count;
  bool is_excluded;
  std::size_t first;   // entry of the first position, in messages that send all
  std::size_t length;  // of all segments
};

[[nodiscard]] __device__ Place place_at(const ScopePlan& plan, std::size_t num_segments, std::size_t num_compressed, std::size_t part) {
  const Tile tile = tile_at(plan, part / kParts);
  const std::size_t before = part % kParts * kPositions, left = tile.count > before ? tile.count - before : 0;
  const bool is_excluded = tile.segment >= num_segments;
  return {tile.segment,
          tile.begin + before,
          left < kPositions ? left : kPositions,
          is_excluded,
          tile.offset + before - (is_excluded ? num_compressed : 0),
          plan.total};
}

// What one client of a group brings to a part.
template <class T>
struct Incoming {
  Form form;  // nothing: no entries of a list either
  double weight;
  const void* numbers;      // of the first position; a list's are where the message says
  const T* scale;           // of the segment
  T step;                   // linear: number of level 1
  double low, high;         // binary: weight c
  std::size_t first, last;  // entries of a list
};
template <class T>
struct Group {
  Incoming<T> incoming[kSumGroup];
  unsigned present[kSumGroup], num_present;  // those that bring something, in order
};

// The first of `count` ascending positions that is not below `bound`, looked for from `guess` on in steps that double: a guess that is near
// reads little of the list.
[[nodiscard]] __device__ std::size_t first_near(const std::uint32_t* index, std::size_t count, std::size_t bound, std::size_t guess) {
  std::size_t low = 0, high = count, step = 8;  // numbers of a sector of memory
  if (guess < count && index[guess] < bound) {
    low = guess + 1;
    for (std::size_t at = guess + step; at < count; at += step) {
      if (index[at] >= bound) {
        high = at;
        break;
      }
      low = at + 1;
      step *= 2;
    }
  } else {
    high = guess < count ? guess : count;
    while (high > 0) {
      const std::size_t at = high > step ? high - step : 0;
      if (index[at] < bound) {
        low = at + 1;
        break;
      }
      high = at;
      step *= 2;
    }
  }
  return low + first_from(index + low, high - low, bound);
}

template <class T>
[[nodiscard]] __device__ Incoming<T> incoming_from(const SentMessage<T>& message, const Place& place) {
  Incoming<T> in{};
  in.form = !place.is_excluded ? message.form : message.excluded != nullptr ? Form::vector : Form::nothing;
  if (in.form == Form::nothing) return in;
  in.weight = message.weight;
  if (in.form == Form::vector) {
    in.numbers = (place.is_excluded ? message.excluded : message.value) + place.first;
    return in;
  }
  if (in.form != Form::list) in.scale = message.scale + place.segment * scales_per_segment(message.format);
  if (in.form == Form::list || in.form == Form::level_list) {
    // Entries are spread about evenly for most operators, and a part has few of them.
    in.first = first_near(message.index, message.num_sent, place.begin, message.num_sent * place.begin / place.length);
    in.last = first_near(message.index, message.num_sent, place.begin + place.count, in.first);
    if (in.first == in.last) in.form = Form::nothing;
    return in;
  }
  in.numbers = message.levels + place.first * static_cast<std::size_t>(message.width);
  if (in.form == Form::binary) {
    in.low = in.weight * static_cast<double>(level_value(message.format, 0, in.scale));
    in.high = in.weight * static_cast<double>(level_value(message.format, 1, in.scale));
  } else {
    in.step = (message.format.has_scale ? *in.scale : T(1)) * static_cast<T>(message.format.unit);
  }
  return in;
}

// Ends with all threads waiting for each other.
template <class T>
__device__ void open_group(const SentMessage<T>* message, std::size_t count, const Place& place, Group<T>& group) {
  if (threadIdx.x < kSumGroup) {
    Incoming<T> in{};
    if (threadIdx.x < count) in = incoming_from(message[threadIdx.x], place);
    group.incoming[threadIdx.x] = in;
  }
  __syncthreads();
  if (threadIdx.x < kWarp) {
    const unsigned lane = threadIdx.x, before = (1u << lane) - 1;
    const bool low = group.incoming[lane].form != Form::nothing, high = group.incoming[kWarp + lane].form != Form::nothing;
    const unsigned lows = __ballot_sync(kAllLanes, low), highs = __ballot_sync(kAllLanes, high);
    const auto num_low = static_cast<unsigned>(__popc(lows));
    if (low) group.present[__popc(lows & before)] = lane;
    if (high) group.present[num_low + static_cast<unsigned>(__popc(highs & before))] = kWarp + lane;
    if (lane == 0) group.num_present = num_low + static_cast<unsigned>(__popc(highs));
  }
  __syncthreads();
}

// The sums of the positions that a thread owns.
struct OwnTotals {
  Quad<double> x[kQuads];

  [[nodiscard]] __device__ static std::size_t first(int quad) { return 4 * (threadIdx.x + static_cast<std::size_t>(quad) * kAddThreads); }
  __device__ explicit OwnTotals(const double* total) {
    FL_UNROLL
    for (int q = 0; q < kQuads; ++q) x[q] = load_quad(total + first(q));
  }
  __device__ void store(double* total) const {
    FL_UNROLL
    for (int q = 0; q < kQuads; ++q) store_quad(total + first(q), x[q]);
  }
};

// A quad on its way; small numbers stay in the words in which they come.
template <class U>
struct alignas(4 * sizeof(U)) SmallQuad {
  std::uint32_t word[sizeof(U)];
  [[nodiscard]] __device__ U at(int l) const {
    constexpr int kBytes = static_cast<int>(sizeof(U));
    return static_cast<U>(word[l * kBytes / 4] >> (8 * (l * kBytes % 4)));
  }
};
template <class U>
struct LargeQuad : Quad<U> {
  [[nodiscard]] __device__ U at(int l) const { return this->x[l]; }
};
template <class U>
using LoadedQuad = std::conditional_t<sizeof(U) < 4, SmallQuad<U>, LargeQuad<U>>;

// weight c of a number, or of a level by the expressions of level_value. U = T: vectors; bytes: binary; others: linear
template <class U, class T>
[[nodiscard]] __device__ double term(const Incoming<T>& in, U x) {
  if constexpr (std::is_same_v<U, T>)
    return in.weight * static_cast<double>(x);
  else if constexpr (std::is_same_v<U, std::uint8_t>)
    return x != 0 ? in.high : in.low;
  else
    return in.weight * static_cast<double>(static_cast<T>(x) * in.step);
}

// Numbers of the i-th client present, for all positions of the part.
template <class U, class T>
[[nodiscard]] __device__ const U* numbers_of(const Group<T>& group, std::size_t i) {
  return static_cast<const U*>(group.incoming[group.present[i]].numbers);
}

// Adds what N of the clients present bring, from the first-th on, if all positions are there and aligned for quads.
template <int N, class U, class T>
[[nodiscard]] __device__ bool add_quads(const Group<T>& group, std::size_t first, std::size_t count, OwnTotals& own) {
  bool whole = count == kPositions;
  FL_UNROLL
  for (int m = 0; m < N; ++m) whole = whole && holds_quads(numbers_of<U>(group, first + m));
  if (!whole) return false;
  LoadedQuad<U> x[N][kQuads];
  FL_UNROLL
  for (int i = 0; i < N * kQuads; ++i)
    x[i / kQuads][i % kQuads] =
        *reinterpret_cast<const LoadedQuad<U>*>(numbers_of<U>(group, first + i / kQuads) + OwnTotals::first(i % kQuads));
  FL_UNROLL
  for (int m = 0; m < N; ++m) {
    const Incoming<T>& in = group.incoming[group.present[first + m]];
    FL_UNROLL
    for (int i = 0; i < 4 * kQuads; ++i) own.x[i / 4].x[i % 4] += term(in, x[m][i / 4].at(i % 4));
  }
  return true;
}

// total += what the clients from .. to-1 of those present bring; every thread its own positions.
template <class U, class T>
__device__ void add_all(const Group<T>& group, std::size_t from, std::size_t to, std::size_t count, double* total) {
  constexpr int kBytesAhead = 64, kAhead = kBytesAhead / (4 * kQuads * static_cast<int>(sizeof(U)));
  OwnTotals own(total);
  while (from < to) {
    if (from + kAhead <= to && add_quads<kAhead, U>(group, from, count, own)) {
      from += kAhead;
      continue;
    }
    const Incoming<T>& in = group.incoming[group.present[from]];
    const U* x = numbers_of<U>(group, from);
    FL_UNROLL
    for (int i = 0; i < 4 * kQuads; ++i) {
      const std::size_t at = OwnTotals::first(i / 4) + static_cast<std::size_t>(i % 4);
      if (at < count) own.x[i / 4].x[i % 4] += term(in, x[at]);
    }
    ++from;
  }
  own.store(total);
}

// The same for levels of any map, position by position.
template <class T>
__device__ void add_levels(const SentMessage<T>* message, const Group<T>& group, std::size_t from, std::size_t to, std::size_t count,
                           double* total) {
  for (; from < to; ++from) {
    const unsigned m = group.present[from];
    const Incoming<T>& in = group.incoming[m];
    const LevelFormat format = message[m].format;
    const LevelWidth width = message[m].width;
    const auto* levels = static_cast<const std::byte*>(in.numbers);
    FL_NO_UNROLL
    for (std::size_t i = threadIdx.x; i < count; i += kAddThreads)
      total[i] += in.weight * static_cast<double>(level_value(format, level_from(levels, width, i), in.scale));
  }
}

// The same for lists of values, of which several clients' are on their way. The threads wait for each other before every client.
template <class T>
__device__ void add_lists(const SentMessage<T>* message, const Group<T>& group, std::size_t from, std::size_t to, std::size_t begin,
                          double* total) {
  constexpr std::size_t kAhead = 8;
  for (; from < to; from += kAhead) {
    std::uint32_t at[kAhead];
    T c[kAhead];
    FL_UNROLL
    for (std::size_t a = 0; a < kAhead; ++a) {
      if (from + a >= to) break;
      const unsigned m = group.present[from + a];
      const std::size_t i = group.incoming[m].first + threadIdx.x;
      if (i >= group.incoming[m].last) continue;
      at[a] = message[m].index[i];
      c[a] = message[m].value[i];
    }
    FL_UNROLL
    for (std::size_t a = 0; a < kAhead; ++a) {
      if (from + a >= to) break;
      __syncthreads();
      const unsigned m = group.present[from + a];
      const std::size_t first = group.incoming[m].first + threadIdx.x, last = group.incoming[m].last;
      const double weight = group.incoming[m].weight;
      if (first < last) total[at[a] - begin] += weight * static_cast<double>(c[a]);
      for (std::size_t i = first + kAddThreads; i < last; i += kAddThreads)
        total[message[m].index[i] - begin] += weight * static_cast<double>(message[m].value[i]);
    }
  }
}

template <class T>
__device__ void add_level_lists(const SentMessage<T>* message, const Group<T>& group, std::size_t from, std::size_t to, std::size_t begin,
                                double* total) {
  for (; from < to; ++from) {
    __syncthreads();
    const unsigned m = group.present[from];
    const Incoming<T>& in = group.incoming[m];
    const SentMessage<T> of = message[m];
    FL_NO_UNROLL
    for (std::size_t i = in.first + threadIdx.x; i < in.last; i += kAddThreads)
      total[of.index[i] - begin] += in.weight * static_cast<double>(level_value(of.format, level_from(of.levels, of.width, i), in.scale));
  }
}

// total = sum of weight c over a group of clients, one after another.
template <class T>
__device__ void add_group(const SentMessage<T>* message, std::size_t count, const Place& place, double* total) {
  __shared__ Group<T> group;
  for (std::size_t i = threadIdx.x; i < kPositions; i += kAddThreads) total[i] = 0;
  open_group(message, count, place, group);
  const std::size_t num_present = group.num_present;
  for (std::size_t from = 0, to = 0; from < num_present; from = to) {
    const Form form = group.incoming[group.present[from]].form;
    while (to < num_present && group.incoming[group.present[to]].form == form) ++to;
    if (from > 0) __syncthreads();  // sums may have been another thread's
    switch (form) {
      case Form::nothing: break;
      case Form::vector: add_all<T>(group, from, to, place.count, total); break;
      case Form::linear8: add_all<std::int8_t>(group, from, to, place.count, total); break;
      case Form::linear16: add_all<std::int16_t>(group, from, to, place.count, total); break;
      case Form::linear32: add_all<std::int32_t>(group, from, to, place.count, total); break;
      case Form::binary: add_all<std::uint8_t>(group, from, to, place.count, total); break;
      case Form::levels: add_levels(message, group, from, to, place.count, total); break;
      case Form::list: add_lists(message, group, from, to, place.begin, total); break;
      case Form::level_list: add_level_lists(message, group, from, to, place.begin, total); break;
    }
  }
  __syncthreads();
}

// Groups are joined like the carries of a binary counter, which `group` of them have counted up to: partial[level] is a sum of 2^level.
__device__ void join(double* partial, std::size_t group, double x) {
  for (; (group & 1) != 0; group >>= 1, partial += kPositions) x = *partial + x;
  *partial = x;
}
[[nodiscard]] __device__ double joined(const double* partial, std::size_t groups) {
  while ((groups & 1) == 0) groups >>= 1, partial += kPositions;
  double x = *partial;
  while ((groups >>= 1) != 0) {
    partial += kPositions;
    if ((groups & 1) != 0) x = *partial + x;
  }
  return x;
}

// sum: [L]
template <class T>
__global__ void __launch_bounds__(kAddThreads, 8)
    add_messages(ScopePlan plan, std::size_t num_segments, std::size_t num_compressed, Cohort<T> cohort, double* sum) {
  __shared__ __align__(16) double total[kPositions];
  const std::size_t groups = (cohort.num_messages + kSumGroup - 1) / kSumGroup;
  double* partial = cohort.partial + blockIdx.x * cohort.num_levels * kPositions;
  for (std::size_t part = blockIdx.x; part < plan.num_tiles * kParts; part += gridDim.x) {
    const Place place = place_at(plan, num_segments, num_compressed, part);
    if (place.count == 0) continue;
    for (std::size_t group = 0; group < groups; ++group) {
      const std::size_t first = group * kSumGroup, left = cohort.num_messages - first;
      add_group(cohort.message + first, left < kSumGroup ? left : kSumGroup, place, total);
      if (groups == 1) break;
      for (std::size_t i = threadIdx.x; i < place.count; i += kAddThreads) join(partial + i, group, total[i]);
    }
    for (std::size_t i = threadIdx.x; i < place.count; i += kAddThreads)
      sum[place.begin + i] = groups == 1 ? total[i] : joined(partial + i, groups);
  }
}

template <class U>
[[nodiscard]] bool is_reachable(const Buffer<U>& buffer) {
  return buffer.empty() || buffer.device() != Device::cpu;
}

template <class T>
[[nodiscard]] bool has_device_form(const Payload<T>& message, const Scope& scope, std::size_t length) {
  const bool reachable = message.index.device() != Device::cpu && is_reachable(message.index) && is_reachable(message.value) &&
                         is_reachable(message.level_bytes) && is_reachable(message.scale) && is_reachable(message.excluded);
  const bool excludes = message.excluded.empty() || (!has_own_shape(message, scope) && message.excluded.size() == num_excluded(scope));
  return reachable && excludes && message.length == length && message.positions != Positions::factors && message.rest == nullptr;
}

template <class T>
[[nodiscard]] Form form_of(const Payload<T>& message) {
  const bool has_levels = message.values == WireValue::levels;
  if (message.positions == Positions::list) return has_levels ? Form::level_list : Form::list;
  if (!has_levels) return Form::vector;
  const LevelWidth width = message.level_width;
  const LevelMap map = message.level_format.map;
  if (map == LevelMap::linear) return width == LevelWidth::w8 ? Form::linear8 : width == LevelWidth::w16 ? Form::linear16 : Form::linear32;
  const bool is_binary = map == LevelMap::sign || map == LevelMap::two_values;
  return is_binary && width == LevelWidth::w8 ? Form::binary : Form::levels;
}

template <class T>
[[nodiscard]] SentMessage<T> describe(const Payload<T>& message, double weight) {
  const bool has_levels = message.values == WireValue::levels;
  return {.form = form_of(message),
          .width = message.level_width,
          .format = message.level_format,
          .weight = weight,
          .num_sent = message.num_sent,
          .index = message.index.data(),
          .value = has_levels ? nullptr : message.value.data(),
          .levels = message.level_bytes.data(),
          .scale = message.scale.data(),
          .excluded = message.excluded.empty() ? nullptr : message.excluded.data()};
}

template <class T>
class Aggregation final : public DeviceAggregation<T> {
 public:
  Aggregation() {
    exec_.device = Device::cuda;
    exec_.stream = stream_.get();
    exec_.workspace = &workspace_;
  }

  [[nodiscard]] bool sum(std::span<const Payload<T>* const> messages, std::span<const double> weights, const Scope& scope,
                         std::span<double> sum) override {
    std::vector<SentMessage<T>> sent(messages.size());
    std::optional<bool> own_shape;  // of all
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (messages[i] == nullptr || messages[i]->silent) continue;
      if (!has_device_form(*messages[i], scope, sum.size())) return false;
      if (own_shape.value_or(has_own_shape(*messages[i], scope)) != has_own_shape(*messages[i], scope)) return false;
      own_shape = has_own_shape(*messages[i], scope);
      sent[i] = describe(*messages[i], weights[i]);
    }
    if (!own_shape) return false;
    add(sent, scope, *own_shape, sum);
    return true;
  }

 private:
  void add(std::span<const SentMessage<T>> sent, const Scope& scope, bool own_shape, std::span<double> sum) {
    Workspace::Frame frame(workspace_);
    Segment plain;
    const std::span<const Segment> segments = message_segments(scope, own_shape, sum.size(), plain);
    std::vector<Segment> all(segments.begin(), segments.end());
    if (!own_shape) all.insert(all.end(), scope.excluded.begin(), scope.excluded.end());
    const std::size_t num_compressed = own_shape ? sum.size() : fl::num_compressed(scope);
    const ScopePlan plan = plan_segments(exec_, all, frame);

    const std::size_t groups = (sent.size() + kSumGroup - 1) / kSumGroup, blocks = std::min(plan.num_tiles * kParts, kMostBlocks);
    std::size_t levels = 0;
    while (groups > 1 && groups >> levels != 0) ++levels;
    const Cohort<T> cohort{upload(exec_, sent, frame), sent.size(), frame.take<double>(blocks * levels * kPositions), levels};
    auto* total = frame.take<double>(sum.size());
    FL_CUDA_CHECK(cudaMemsetAsync(total, 0, sum.size() * sizeof(double), stream_of(exec_)));  // also of positions in no segment
    Launch(exec_, "add_messages", blocks, kAddThreads)(add_messages<T>, plan, segments.size(), num_compressed, cohort, total);
    ::fl::copy_bytes(sum.data(), Device::cpu, total, Device::cuda, sum.size_bytes(), exec_.stream);
  }

  DeviceStream stream_{Device::cuda};
  Workspace workspace_{Device::cuda};
  Exec exec_;
};

}  // namespace

template <class T>
std::unique_ptr<DeviceAggregation<T>> make_aggregation() {
  return std::make_unique<Aggregation<T>>();
}
template std::unique_ptr<DeviceAggregation<float>> make_aggregation();
template std::unique_ptr<DeviceAggregation<double>> make_aggregation();

}  // namespace fl::cuda
