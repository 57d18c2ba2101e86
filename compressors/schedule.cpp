// A schedule of operators: each operator is used from its round until the next one starts. It expresses warm-up of k, growing levels, or
// rounds without compression.
//
//   C_t = stages[i]  for  from[i] <= t < from[i+1]
//   compressor.up = { kind = "schedule", from = [1, 11, 21], stages = [
//     { kind = "top_k", ratio = 0.25 }, { kind = "top_k", ratio = 0.0625 }, { kind = "top_k", ratio = 0.01 } ] }
//
// Client and server know the round, so the schedule is not sent. A claim of the contract holds if it holds for all stages. Published bits:
// 32 per raw value or the bits of a level. The initial densities of deep gradient compression are such a schedule (and an option of
// dgc_sampled).
// Group: hybrid
#include <algorithm>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/by_segment.hpp"
#include "compressors/support/wrapped.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct ScheduleOptions {
  std::vector<NamedPart> stages{{"top_k", {}}};
  std::vector<std::int64_t> from{1};
};

inline void describe(Schema& s, ScheduleOptions& o) {
  part_field(s, "stages", "compressor", o.stages, "operators, one after another");
  s.field("from", o.from, "the first round of each stage; ascending, the first is 1").at_least(1).at_most(4294967295.0);
}

inline void validate(const ScheduleOptions& o, Problems& problems) {
  if (o.stages.empty()) problems.push_back({"stages", "must name at least one operator"});
  if (o.from.size() != o.stages.size())
    problems.push_back({"from", "must have one round for each of the " + std::to_string(o.stages.size()) + " stages, has " +
                                    std::to_string(o.from.size())});
  else if (!o.from.empty() &&
           (o.from.front() != 1 || std::adjacent_find(o.from.begin(), o.from.end(), std::greater_equal<>()) != o.from.end()))
    problems.push_back({"from", "must begin with 1 and ascend"});
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
class Schedule final : public Compressor<T> {
 public:
  explicit Schedule(const ScheduleOptions& options) : from_(options.from) {
    for (const NamedPart& stage : options.stages) stages_.emplace_back(stage);
  }

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    std::vector<Contract> all;
    for (const Wrapped<T>& stage : stages_) all.push_back(stage->contract(scope));
    return weakest(all);
  }
  [[nodiscard]] Scope adapt(Scope scope) const override {
    for (const Wrapped<T>& stage : stages_) scope = stage->adapt(std::move(scope));
    return scope;
  }
  void check(const Scope& scope) const override {
    for (const Wrapped<T>& stage : stages_) stage.check("schedule", scope);
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>& context, const Scope& scope) const override {
    return stage_of(context.round)->known_levels(context, scope);
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    stage_of(context.round)->compress(exec, context, input, scope, state, messages);
  }
  void reconstruct(const Exec& exec, const CompressContext<T>& context, const Scope& scope,
                   std::span<Payload<T>* const> messages) const override {
    stage_of(context.round)->reconstruct(exec, context, scope, messages);
  }

 private:
  [[nodiscard]] const Wrapped<T>& stage_of(std::uint32_t round) const {
    const auto next = std::upper_bound(from_.begin() + 1, from_.end(), static_cast<std::int64_t>(round));
    return stages_[static_cast<std::size_t>(next - from_.begin()) - 1];
  }
  std::vector<Wrapped<T>> stages_;
  std::vector<std::int64_t> from_;
};

FL_REGISTER_PART(Compressor, Schedule, ScheduleOptions,
                 (PartInfo{"compressor", "schedule", "different operators in successive rounds, such as a warm-up", ""}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
