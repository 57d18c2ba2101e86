#include "scenarios/analysis/break_even.hpp"

#include <cmath>
#include <limits>

namespace fl {

namespace {

struct MessageCost {
  double seconds = 0, bits = 0;
};

// Returns the mean over the runs of a cell; no value if a run does not know it.
std::optional<MessageCost> message_cost(const Study& study, const StudyCell& cell) {
  if (cell.runs.empty()) return std::nullopt;
  MessageCost mean;
  for (const std::size_t run : cell.runs) {
    const StudyRun& of = study.runs[run];
    if (std::isnan(of.message_s) || std::isnan(of.message_bits)) return std::nullopt;
    mean.seconds += of.message_s / static_cast<double>(cell.runs.size());
    mean.bits += of.message_bits / static_cast<double>(cell.runs.size());
  }
  return mean;
}

}  // namespace

std::optional<double> break_even_rate(const Study& study, const StudyCell& cell) {
  const StudyCell* base = study.find(study.panels[cell.panel], study.references.baseline);
  if (base == nullptr || cell.method == study.references.baseline) return std::nullopt;
  const std::optional<MessageCost> own = message_cost(study, cell), its = message_cost(study, *base);
  if (!own || !its) return std::nullopt;
  const double fewer_bits = its->bits - own->bits, more_seconds = own->seconds - its->seconds;
  if (fewer_bits <= 0) return 0;
  return more_seconds <= 0 ? std::numeric_limits<double>::infinity() : fewer_bits / more_seconds;
}

}  // namespace fl
