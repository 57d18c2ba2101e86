// Times of availability from a file: CSV with a first line "client,from_s,until_s" and a line for each interval [from_s, until_s).
//
// A client without lines of its own has those of client "*". With `repeat` the trace begins again after each period.
#include <utility>

#include "fl_core/config/quantity.hpp"
#include "timing/availability.hpp"
#include "timing/number_table.hpp"
#include "timing/on_times.hpp"

namespace fl {
namespace {

struct TraceAvailabilityOptions {
  std::string path;
  bool repeat = false;
  double period = 0;
};
void describe(Schema& schema, TraceAvailabilityOptions& options) {
  schema.field("path", options.path, "CSV with the columns client (or * for all others), from_s and until_s [s]; looked for like data.path")
      .required();
  schema.field("repeat", options.repeat, "the trace begins again after each `period`");
  quantity_field(schema, "period", options.period, time_units(), "time after which the trace begins again, for repeat = true")
      .above(0)
      .at_most(1e12)
      .unit("s");
}
void validate(const TraceAvailabilityOptions& options, Problems& problems) {
  if (options.repeat && options.period <= 0) problems.push_back({"period", "is missing; repeat = true needs it"});
  if (!options.repeat && options.period > 0) problems.push_back({"period", "has no effect without repeat = true"});
}

class TraceAvailability final : public Availability {
 public:
  explicit TraceAvailability(TraceAvailabilityOptions options) : options_(std::move(options)) {}

  void open(const ClientFacts& clients) override {
    const NumberTable table(options_.path, {{"from_s"}, {"until_s"}}, clients, false);
    times_.clear();
    for (const auto& rows : table.rows_by_client()) times_.push_back(times_of(table, rows));
  }
  [[nodiscard]] bool is_here(std::uint32_t client, double now_s) const override { return times_[client].is_on(now_s); }
  [[nodiscard]] double next_change(std::uint32_t client, double now_s) const override { return times_[client].next_change(now_s); }

 private:
  [[nodiscard]] OnTimes times_of(const NumberTable& table, const std::vector<const NumberTable::Row*>& rows) const {
    const double period = options_.repeat ? options_.period : std::numeric_limits<double>::infinity();
    std::vector<OnTimes::Interval> intervals;
    for (const NumberTable::Row* row : rows) {
      const double from = row->cells[0], until = row->cells[1];
      const std::string shown = to_string(Value{from}) + " to " + to_string(Value{until});
      if (from < 0) table.refuse(row->line, "from_s must be at least 0, is " + to_string(Value{from}));
      if (until <= from) table.refuse(row->line, "an interval must end after it begins, is " + shown);
      if (until > period)
        table.refuse(row->line,
                     "an interval must end at availability.period = " + to_string(Value{period}) + " at the latest, is " + shown);
      if (!intervals.empty() && from < intervals.back().until_s)
        table.refuse(row->line, "intervals of a client must ascend without overlaps: " + shown + " does not follow " +
                                    to_string(Value{intervals.back().until_s}));
      intervals.push_back({from, until});
    }
    return OnTimes(intervals, period);
  }

  TraceAvailabilityOptions options_;
  std::vector<OnTimes> times_;  // [N]
};

FL_REGISTER_AVAILABILITY(TraceAvailability, TraceAvailabilityOptions, "trace", "times of availability from a file", "");

}  // namespace
}  // namespace fl
