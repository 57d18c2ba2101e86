#include "fl_core/ops/cuda/plan.cuh"

#include <algorithm>
#include <vector>

#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {

const void* upload_bytes(const Exec& exec, const void* from, std::size_t bytes, Workspace::Frame& frame) {
  std::byte* to = frame.take<std::byte>(bytes);
  ::fl::cuda::upload_bytes(to, from, bytes, exec.stream);
  return to;
}

ScopePlan plan_segments(const Exec& exec, std::span<const Segment> segments, Workspace::Frame& frame) {
  std::vector<SegmentPlan> plans;
  plans.reserve(segments.size());
  ScopePlan scope;
  scope.num_segments = segments.size();
  for (const Segment& segment : segments) {
    plans.push_back({segment.begin, segment.size(), scope.num_tiles, scope.total});
    scope.num_tiles += (segment.size() + kReduceTile - 1) / kReduceTile;
    scope.total += segment.size();
    scope.largest = std::max(scope.largest, segment.size());
  }
  scope.segment = upload(exec, std::span<const SegmentPlan>(plans), frame);
  return scope;
}

template <class T>
const PayloadRow<T>* upload_rows(const Exec& exec, std::span<Payload<T>* const> out, Workspace::Frame& frame) {
  std::vector<PayloadRow<T>> rows;
  rows.reserve(out.size());
  for (Payload<T>* payload : out)
    rows.push_back({payload->counts.data(), payload->index.data(), payload->value.data(), payload->level_bytes.data(),
                    payload->scale.data(), payload->excluded.data()});
  return upload(exec, std::span<const PayloadRow<T>>(rows), frame);
}

template <class T>
const PayloadRow<T>* prepare_levels(const Exec& exec, const ScopePlan& plan, const LevelFormat& format, LevelWidth width,
                                    std::span<Payload<T>* const> out, Workspace::Frame& frame) {
  for (Payload<T>* payload : out) {
    payload->place_on(Device::cuda);
    payload->positions = Positions::all;
    payload->values = WireValue::levels;
    payload->level_format = format;
    payload->level_width = width;
    payload->num_sent = plan.total;
    payload->level_bytes.resize_for_overwrite(plan.total * static_cast<std::size_t>(width));
    payload->scale.resize_for_overwrite(plan.num_segments * scales_per_segment(format));
  }
  return upload_rows(exec, out, frame);
}

#define FL_INSTANTIATE(T)                                                                                        \
  template const PayloadRow<T>* upload_rows<T>(const Exec&, std::span<Payload<T>* const>, Workspace::Frame&);    \
  template const PayloadRow<T>* prepare_levels<T>(const Exec&, const ScopePlan&, const LevelFormat&, LevelWidth, \
                                                  std::span<Payload<T>* const>, Workspace::Frame&);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
