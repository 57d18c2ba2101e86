// The seconds of a round in simulated time, by cause. docs/devices.md has the clock.
#include <cmath>
#include <vector>

#include "scenarios/measures/measure.hpp"
#include "timing/round_timeline.hpp"

namespace fl {
namespace {

// Returns a column of seconds.
MeasureColumn seconds(const char* name, const char* definition, const char* empty, const char* title) {
  return {.name = name, .unit = "s", .definition = definition, .empty = empty, .title = title, .is_compared = false};
}

template <class T>
class RoundSeconds final : public Measure<T> {
 public:
  explicit RoundSeconds(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    const char* none = "no client took part";
    return {seconds("round_s", "simulated seconds of the round", none, "seconds of a round"),
            seconds("down_s", "of these, the mean time in which a client receives the model", none, "seconds down"),
            seconds("compute_s", "the mean time of a client's local work", none, "seconds of local work"),
            seconds("message_s", "the mean time in which a client makes its message", none, "seconds of making messages"),
            seconds("up_s", "the mean time in which a client's message is on its way", none, "seconds up"),
            {.name = "message_bits",
             .unit = "bits",
             .definition = "bits of a client's message, mean over the clients",
             .empty = none,
             .title = "bits of a message",
             .is_compared = false},
            {.name = "idle_share",
             .unit = "share",
             .definition = "share of the round in which a client waits, mean over the clients",
             .empty = "the round took no time",
             .title = "share of waiting",
             .shown = MeasureColumn::Shown::share,
             .is_compared = false},
            seconds("by_ratio_s",
                    "simulated time since the start by a clock that knows no messages: 32 bits for every value sent and a dense model down",
                    "the server does not wait for rounds", "seconds by a ratio")};
  }
  [[nodiscard]] MeasureTimes when() const override { return MeasureTimes::each_round; }
  [[nodiscard]] bool reads_training_rows() const override { return false; }
  [[nodiscard]] std::string refusal(const MeasureProblem<T>& problem) const override {
    return problem.has_clock ? "" : "measures simulated time, which needs [network] or [devices]: add one of these tables";
  }

  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    if (view.costs.timeline == nullptr) return;
    const RoundTimeline& round = *view.costs.timeline;
    if (!std::isnan(round.by_ratio_s)) row.set("by_ratio_s", round.by_ratio_s);
    if (round.clients.empty()) return;
    const double length = round.ended_s - round.opened_s, M = static_cast<double>(round.clients.size());
    ClientTimes mean;
    double busy = 0;
    for (const ClientTimes& client : round.clients) {
      mean.down_s += client.down_s / M;
      mean.compute_s += client.compute_s / M;
      mean.message_s += client.message_s / M;
      mean.up_s += client.up_s / M;
      mean.up_bits += client.up_bits / M;
      const double works = client.down_s + client.compute_s + client.message_s + client.up_s;
      busy += (std::isfinite(works) && works < length ? works : length) / M;
    }
    row.set("round_s", length);
    row.set("down_s", mean.down_s);
    row.set("compute_s", mean.compute_s);
    row.set("message_s", mean.message_s);
    row.set("up_s", mean.up_s);
    row.set("message_bits", mean.up_bits);
    if (length > 0) row.set("idle_share", 1 - busy / length);
  }
};

FL_REGISTER_MEASURE(RoundSeconds, NoOptions, "round_times", "simulated seconds of a round, by cause", "");

}  // namespace
}  // namespace fl
