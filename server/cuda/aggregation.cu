#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "fl_core/message/payload_segments.hpp"
#include "server/cuda/add_messages.cuh"
#include "server/cuda/aggregation.hpp"
#include "server/cuda/list_sums.cuh"

namespace fl::cuda {
namespace {

using detail::Cohort;
using detail::Cut;
using detail::kAddThreads;
using detail::kMostNear;
using detail::kMostTogether;
using detail::kPositions;

constexpr std::size_t kMostBlocks = 2048;    // which then take several parts; each has its own sums of groups
constexpr std::size_t kWantedBlocks = 1584;  // so that the last ones of a GPU with 132 multiprocessors leave few of them idle
constexpr std::size_t kMostRuns = 64, kRunLevels = std::bit_width(kMostRuns);

// Returns the number of groups of clients in a run (add_messages.cuh), a power of two.
[[nodiscard]] std::size_t groups_of_run(std::size_t parts, std::size_t groups) {
  const std::size_t most = std::max<std::size_t>(parts, 1), wanted = (kWantedBlocks + most - 1) / most;
  const std::size_t runs = std::clamp<std::size_t>(wanted, 1, std::min(groups, kMostRuns));
  return std::bit_ceil((groups + runs - 1) / runs);
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
  if (width != LevelWidth::w8) return Form::levels;
  return map == LevelMap::sign ? Form::signs : map == LevelMap::two_values ? Form::two_values : Form::levels;
}

template <class T>
[[nodiscard]] SentMessage<T> describe(const Payload<T>& message, double weight) {
  SentMessage<T> sent;
  sent.form = form_of(message);
  sent.weight = weight;
  const bool has_levels = message.values == WireValue::levels, has_list = message.positions == Positions::list;
  if (has_list)
    sent.numbers = message.index.data();
  else if (has_levels)
    sent.numbers = message.level_bytes.data();
  else
    sent.numbers = message.value.data();
  if (has_levels)
    sent.second = scales_per_segment(message.level_format) > 0 ? message.scale.data() : nullptr;
  else if (has_list)
    sent.second = message.value.data();
  if (is_linear(sent.form))
    sent.unit = static_cast<T>(message.level_format.unit);
  else
    sent.num_sent = static_cast<std::uint32_t>(message.num_sent);
  return sent;
}
template <class T>
[[nodiscard]] MessageDetails<T> details_of(const Payload<T>& message) {
  return {message.level_format, message.level_width, message.level_bytes.data(),
          message.excluded.empty() ? nullptr : message.excluded.data()};
}

// Contiguous buckets of one size. A part holds several of them, so that a client's scales of a part are neighbours.
[[nodiscard]] Cut cut_for(std::span<const Segment> segments, std::size_t num_compressed, std::size_t num_tiles) {
  Cut cut;
  cut.num_segments = segments.size();
  cut.num_compressed = num_compressed;
  const std::size_t bucket = segments.empty() ? 0 : segments.front().size();
  bool are_buckets = segments.size() > 1 && bucket > 0 && bucket % 4 == 0 && 2 * bucket <= kPositions;
  for (std::size_t s = 1; s < segments.size() && are_buckets; ++s)
    are_buckets = segments[s].begin == segments[s - 1].end && segments[s].size() > 0 &&
                  (segments[s].size() == bucket || (s + 1 == segments.size() && segments[s].size() < bucket));
  std::size_t tiles = 0;
  for (const Segment& segment : segments) tiles += (segment.size() + kReduceTile - 1) / kReduceTile;
  if (are_buckets) {
    cut.bucket = bucket;
    cut.together = std::min(kPositions / bucket, kMostTogether);
  }
  cut.num_compressed_parts = are_buckets ? (segments.size() + cut.together - 1) / cut.together : tiles;
  cut.num_parts = cut.num_compressed_parts + num_tiles - tiles;
  return cut;
}

// Adds up the sums of runs as GroupSums does those of groups. of_run: [runs,L]
__global__ void join_runs(const double* of_run, std::size_t runs, std::size_t L, double* sum) {
  for (std::size_t i = thread_index(); i < L; i += num_threads()) {
    double level[kRunLevels];
    const GroupSums sums(level, kRunLevels, nullptr, 1);
    for (std::size_t run = 0; run + 1 < runs; ++run) sums.add(0, run, of_run[run * L + i]);
    sum[i] = sums.with_last(0, runs - 1, of_run[(runs - 1) * L + i]);
  }
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
    std::vector<MessageDetails<T>> details(messages.size());
    std::optional<bool> own_shape;  // of all
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (messages[i] == nullptr || messages[i]->silent) continue;
      if (!has_device_form(*messages[i], scope, sum.size())) return false;
      if (own_shape.value_or(has_own_shape(*messages[i], scope)) != has_own_shape(*messages[i], scope)) return false;
      own_shape = has_own_shape(*messages[i], scope);
      sent[i] = describe(*messages[i], weights[i]);
      details[i] = details_of(*messages[i]);
    }
    if (!own_shape) return false;
    add(sent, details, scope, *own_shape, sum);
    return true;
  }

 private:
  void add(std::span<const SentMessage<T>> sent, std::span<const MessageDetails<T>> details, const Scope& scope, bool own_shape,
           std::span<double> sum) {
    Workspace::Frame frame(workspace_);
    Segment plain;
    const std::span<const Segment> segments = message_segments(scope, own_shape, sum.size(), plain);
    std::vector<Segment> all(segments.begin(), segments.end());
    if (!own_shape) all.insert(all.end(), scope.excluded.begin(), scope.excluded.end());
    const ScopePlan plan = plan_segments(exec_, all, frame);
    const Cut cut = cut_for(segments, own_shape ? sum.size() : fl::num_compressed(scope), plan.num_tiles);
    const SentMessage<T>* message = upload(exec_, sent, frame);
    auto* total = frame.take<double>(sum.size());

    const bool are_lists =
        std::ranges::all_of(sent, [](const SentMessage<T>& one) { return one.form == Form::list || one.form == Form::nothing; });
    if (are_lists) {
      std::uint32_t most = 0;
      for (const SentMessage<T>& one : sent) most = std::max(most, one.num_sent);
      sum_lists(exec_, message, sent.size(), most, sum.size(), total);
    } else if (plan.total != sum.size()) {  // positions in no segment
      FL_CUDA_CHECK(cudaMemsetAsync(total, 0, sum.size() * sizeof(double), stream_of(exec_)));
    }
    add_parts(sent.size(), message, upload(exec_, details, frame), plan, cut, are_lists, sum.size(), total, frame);
    ::fl::copy_bytes(sum.data(), Device::cpu, total, Device::cuda, sum.size_bytes(), exec_.stream);
  }

  // Adds what is not a list of values, or, where all messages are such lists, their excluded tensors.
  void add_parts(std::size_t K, const SentMessage<T>* message, const MessageDetails<T>* details, const ScopePlan& plan, const Cut& cut,
                 bool are_lists, std::size_t L, double* total, Workspace::Frame& frame) {
    const std::size_t first = are_lists ? cut.num_compressed_parts : 0, parts = cut.num_parts - first;
    const std::size_t groups = (K + kSumGroup - 1) / kSumGroup, in_run = are_lists ? std::bit_ceil(groups) : groups_of_run(parts, groups);
    const std::size_t runs = (groups + in_run - 1) / in_run, blocks = std::min(parts * runs, kMostBlocks);
    const std::size_t levels = GroupSums::levels(std::min(groups, in_run)), near = std::min(levels, kMostNear);
    const Cohort<T> cohort{message, details, K, near, levels - near, frame.take<double>(blocks * (levels - near) * kPositions)};
    double* of_run = runs == 1 ? total : frame.take<double>(runs * L);
    if (runs > 1 && plan.total != L) FL_CUDA_CHECK(cudaMemsetAsync(of_run, 0, runs * L * sizeof(double), stream_of(exec_)));
    Launch(exec_, "add_messages", blocks, kAddThreads)
        .with_shared((1 + near) * kPositions * sizeof(double))(detail::add_messages<T>, plan, cut, first, cohort, in_run * kSumGroup, L,
                                                               of_run);
    if (runs > 1) Launch(exec_, "join_runs", blocks_for(L))(join_runs, of_run, runs, L, total);
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
