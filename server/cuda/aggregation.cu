// A block owns a tile of positions and its sums, in shared memory, and goes through the clients in their order. Values for all positions
// are added by the thread that owns the position. A list's entries are shared out among the threads: no two of one client meet, and the
// block waits between clients. Where the tile's entries begin in each list is found by binary search, for a group of clients at a time.
#include <algorithm>
#include <optional>
#include <vector>

#include "fl_core/cuda/check.cuh"
#include "fl_core/cuda/levels.cuh"
#include "fl_core/cuda/plan.cuh"
#include "fl_core/payload_segments.hpp"
#include "server/cuda/aggregation.hpp"

namespace fl::cuda {
namespace {

constexpr std::size_t kMostBlocks = 2048;  // which then take several tiles; each has its own sums of groups

// How a message brings its numbers to a tile.
enum class Form : std::uint8_t { nothing, vector, levels, list };

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

// The clients' messages, and the sums of groups that a block keeps aside: [blocks, num_levels, kReduceTile], where there are several.
template <class T>
struct Cohort {
  const SentMessage<T>* message;  // [num_messages]
  std::size_t num_messages;
  double* partial;
  std::size_t num_levels;
};

// A tile of positions. Tensors that are excluded are the last segments of the plan: their tiles read other numbers.
struct Place {
  Tile tile;
  bool is_excluded;
  std::size_t first;  // entry of the tile's first position, in messages that send all
};

[[nodiscard]] __device__ Place place_at(const ScopePlan& plan, std::size_t num_segments, std::size_t num_compressed, std::size_t tile) {
  const Tile here = tile_at(plan, tile);
  const bool is_excluded = here.segment >= num_segments;
  return {here, is_excluded, is_excluded ? here.offset - num_compressed : here.offset};
}

template <class T>
[[nodiscard]] __device__ Form form_of(const SentMessage<T>& message, const Place& place) {
  if (!place.is_excluded) return message.form;
  return message.excluded != nullptr ? Form::vector : Form::nothing;
}

template <class T>
[[nodiscard]] __device__ T level_number(const SentMessage<T>& message, std::size_t i, const T* scale) {
  return level_value(message.format, level_from(message.levels, message.width, i), scale);
}
template <class T>
[[nodiscard]] __device__ const T* scale_of(const SentMessage<T>& message, const Place& place) {
  return message.scale + place.tile.segment * scales_per_segment(message.format);
}

// total[i] += weight c_i for the messages from .. to-1, by the thread that owns i.
template <class T>
__device__ void add_vectors(const SentMessage<T>* message, std::size_t from, std::size_t to, const Place& place, double* total) {
  for (std::size_t i = threadIdx.x; i < place.tile.count; i += blockDim.x) {
    double x = total[i];
    for (std::size_t m = from; m < to; ++m) {
      const T* c = place.is_excluded ? message[m].excluded : message[m].value;
      x += message[m].weight * static_cast<double>(c[place.first + i]);
    }
    total[i] = x;
  }
}

template <class T>
__device__ void add_levels(const SentMessage<T>& message, const Place& place, double* total) {
  const T* scale = scale_of(message, place);
  for (std::size_t i = threadIdx.x; i < place.tile.count; i += blockDim.x)
    total[i] += message.weight * static_cast<double>(level_number(message, place.first + i, scale));
}

// The entries from .. to-1 of a list.
template <class T>
__device__ void add_entries(const SentMessage<T>& message, std::size_t from, std::size_t to, const Place& place, double* total) {
  const T* scale = scale_of(message, place);
  for (std::size_t i = from + threadIdx.x; i < to; i += blockDim.x) {
    const T c = message.value != nullptr ? message.value[i] : level_number(message, i, scale);
    total[message.index[i] - place.tile.begin] += message.weight * static_cast<double>(c);
  }
}

// The tile's part of `count` clients' lists: entries bound[m][0] .. bound[m][1]-1.
template <class T>
__device__ void find_entries(const SentMessage<T>* message, std::size_t count, const Place& place, std::size_t (*bound)[2]) {
  for (std::size_t i = threadIdx.x; i < 2 * count; i += blockDim.x) {
    const SentMessage<T>& of = message[i / 2];
    if (form_of(of, place) != Form::list) continue;
    bound[i / 2][i % 2] = first_from(of.index, of.num_sent, place.tile.begin + (i % 2 == 0 ? 0 : place.tile.count));
  }
}

// total = sum of weight c over a group of clients, one after another.
template <class T>
__device__ void add_group(const SentMessage<T>* message, std::size_t count, const Place& place, double* total) {
  __shared__ std::size_t bound[kSumGroup][2];
  for (std::size_t i = threadIdx.x; i < place.tile.count; i += blockDim.x) total[i] = 0;
  find_entries(message, count, place, bound);
  __syncthreads();
  bool scattered = false;  // the last message added was a list: other threads have written what this one owns
  for (std::size_t m = 0; m < count;) {
    const Form form = form_of(message[m], place);
    const bool is_list = form == Form::list;
    std::size_t next = m + 1;
    if (form == Form::vector)
      while (next < count && form_of(message[next], place) == Form::vector) ++next;
    if (form != Form::nothing && !(is_list && bound[m][0] == bound[m][1])) {
      if (is_list || scattered) __syncthreads();
      scattered = is_list;
      if (form == Form::vector) add_vectors(message, m, next, place, total);
      if (form == Form::levels) add_levels(message[m], place, total);
      if (is_list) add_entries(message[m], bound[m][0], bound[m][1], place, total);
    }
    m = next;
  }
  __syncthreads();
}

// Groups are joined like the carries of a binary counter, which `group` of them have counted up to: partial[level] is a sum of 2^level.
__device__ void join(double* partial, std::size_t group, double x) {
  for (; (group & 1) != 0; group >>= 1, partial += kReduceTile) x = *partial + x;
  *partial = x;
}
[[nodiscard]] __device__ double joined(const double* partial, std::size_t groups) {
  while ((groups & 1) == 0) groups >>= 1, partial += kReduceTile;
  double x = *partial;
  while ((groups >>= 1) != 0) {
    partial += kReduceTile;
    if ((groups & 1) != 0) x = *partial + x;
  }
  return x;
}

// sum: [L]
template <class T>
__global__ void add_messages(ScopePlan plan, std::size_t num_segments, std::size_t num_compressed, Cohort<T> cohort, double* sum) {
  __shared__ double total[kReduceTile];
  const std::size_t groups = (cohort.num_messages + kSumGroup - 1) / kSumGroup;
  double* partial = cohort.partial + blockIdx.x * cohort.num_levels * kReduceTile;
  for (std::size_t tile = blockIdx.x; tile < plan.num_tiles; tile += gridDim.x) {
    const Place place = place_at(plan, num_segments, num_compressed, tile);
    for (std::size_t group = 0; group < groups; ++group) {
      const std::size_t first = group * kSumGroup, left = cohort.num_messages - first;
      add_group(cohort.message + first, left < kSumGroup ? left : kSumGroup, place, total);
      if (groups == 1) break;
      for (std::size_t i = threadIdx.x; i < place.tile.count; i += blockDim.x) join(partial + i, group, total[i]);
    }
    for (std::size_t i = threadIdx.x; i < place.tile.count; i += blockDim.x)
      sum[place.tile.begin + i] = groups == 1 ? total[i] : joined(partial + i, groups);
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
[[nodiscard]] SentMessage<T> describe(const Payload<T>& message, double weight) {
  const bool has_levels = message.values == WireValue::levels;
  return {.form = message.positions == Positions::list ? Form::list
                  : has_levels                         ? Form::levels
                                                       : Form::vector,
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

    const std::size_t groups = (sent.size() + kSumGroup - 1) / kSumGroup, blocks = std::min(plan.num_tiles, kMostBlocks);
    std::size_t levels = 0;
    while (groups > 1 && groups >> levels != 0) ++levels;
    const Cohort<T> cohort{upload(exec_, sent, frame), sent.size(), frame.take<double>(blocks * levels * kReduceTile), levels};
    auto* total = frame.take<double>(sum.size());
    FL_CUDA_CHECK(cudaMemsetAsync(total, 0, sum.size() * sizeof(double), stream_of(exec_)));  // also of positions in no segment
    Launch(exec_, "add_messages", blocks)(add_messages<T>, plan, segments.size(), num_compressed, cohort, total);
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
