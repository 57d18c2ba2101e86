#include "study/planning/plan_json.hpp"

#include <ostream>

#include "study/output/json.hpp"

namespace fl {

namespace {

// Writes the simulated seconds of kinds of devices, if there are any.
void write_tiers(const std::vector<TierSeconds>& tiers, std::ostream& out) {
  if (tiers.empty()) return;
  out << ",\"devices\":[";
  for (const TierSeconds& tier : tiers)
    out << (&tier == tiers.data() ? "" : ",") << "{\"name\":" << json_text(tier.name) << ",\"clients\":" << tier.clients
        << ",\"local_s\":" << json_number(tier.local_s) << ",\"message_s\":" << json_number(tier.message_s)
        << ",\"reading_s\":" << json_number(tier.reading_s) << ",\"round_s\":" << json_number(tier.round_s()) << "}";
  out << "]";
}

}  // namespace

void write_plan(const StudyPlan& plan, const std::vector<Cell>& cells, int jobs, std::ostream& out) {
  out << "{\"runs\":" << cells.size() << ",\"workers\":" << jobs << ",\"start_s\":" << json_number(plan.start_s)
      << ",\"computing_s\":" << json_number(plan.study_s) << ",\"tuning_runs\":" << json_number(plan.tuning_runs)
      << ",\"tuning_s\":" << json_number(plan.tuning_s) << ",\"wall_s\":" << json_number(wall_s(plan, jobs))
      << ",\"worker_bytes\":" << plan.worker_bytes << ",\"device_bytes\":" << plan.device.own_bytes()
      << ",\"device_memory\":" << json_text(plan.device.needs_managed.empty() ? "plain" : "managed")
      << ",\"device_training\":" << json_text(plan.device.trains_on_cpu.empty() ? "gpu" : "cpu")
      << ",\"device_least_bytes\":" << plan.device.least_bytes() << ",\"device_data_bytes\":" << plan.device.data_bytes
      << ",\"bits\":" << json_number(plan.bits) << ",\"dropped_rows\":" << plan.facts.num_dropped_rows
      << ",\"dropped_test_rows\":" << plan.facts.num_dropped_test_rows << ",\"combinations\":[";
  for (const Combination& one : plan.combinations) {
    const Calibration& c = one.trial.calibration;
    out << (&one == plan.combinations.data() ? "\n" : ",\n") << "{\"axes\":{";
    const auto& labels = cells[one.cell].axis_labels;
    for (std::size_t a = 0; a < labels.size(); ++a)
      out << (a > 0 ? "," : "") << json_text(labels[a].first) << ":" << json_text(labels[a].second);
    out << "},\"runs\":" << one.seeds << ",\"tried\":" << (one.is_tried ? "true" : "false") << ",\"rounds\":" << c.total_rounds
        << ",\"run_s\":" << json_number(one.run_s()) << ",\"all_s\":" << json_number(one.all_s())
        << ",\"tuning_runs\":" << json_number(one.tuning_runs) << ",\"candidates\":" << one.candidates
        << ",\"bits_up\":" << json_number(c.bits_up) << ",\"bits_down\":" << json_number(c.bits_down)
        << ",\"failure\":" << json_text(one.trial.failure);
    write_tiers(c.tiers, out);
    out << "}";
  }
  out << "\n]}\n";
}

}  // namespace fl
