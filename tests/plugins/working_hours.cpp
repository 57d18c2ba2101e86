// An availability: clients can be reached until `hours_s`, and never again.
#include "timing/availability.hpp"

namespace fl {

struct WorkingHoursOptions {
  double hours_s = 3600;
};
inline void describe(Schema& schema, WorkingHoursOptions& options) {
  schema.field("hours_s", options.hours_s, "time for which clients can be reached").above(0).unit("s");
}

namespace {

class WorkingHours final : public Availability {
 public:
  explicit WorkingHours(const WorkingHoursOptions& options) : options_(options) {}

  bool is_here(std::uint32_t, double now_s) const override { return now_s < options_.hours_s; }
  double next_change(std::uint32_t, double now_s) const override {
    return now_s < options_.hours_s ? options_.hours_s : std::numeric_limits<double>::infinity();
  }

 private:
  WorkingHoursOptions options_;
};

FL_REGISTER_AVAILABILITY(WorkingHours, WorkingHoursOptions, "working_hours", "clients that leave at a time", "");

}  // namespace
}  // namespace fl
