// The same messages in other ways of exchanging them than a server: timing/collectives.hpp has the formulas.
#include <vector>

#include "scenarios/measures/measure.hpp"
#include "timing/collectives.hpp"
#include "timing/round_timeline.hpp"

namespace fl {
namespace {

// Returns a column of seconds.
MeasureColumn seconds_of(const char* name, const char* definition, const char* title) {
  return {.name = name, .unit = "s", .definition = definition, .empty = "no client took part", .title = title, .is_compared = false};
}

template <class T>
class CollectiveTimes final : public Measure<T> {
 public:
  explicit CollectiveTimes(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {
        seconds_of("parameter_server_s", "simulated seconds of the round without local work: the longest time down, of the message and up",
                   "seconds by a server"),
        seconds_of("ring_all_reduce_s",
                   "seconds of a ring all-reduce of messages as long as the longest, if they could be added on the way",
                   "seconds by a ring"),
        seconds_of("tree_all_reduce_s", "seconds of a tree all-reduce of such messages", "seconds by a tree"),
        seconds_of("all_gather_s", "seconds in which every client gets the messages of all others on a ring", "seconds by all-gather")};
  }
  [[nodiscard]] MeasureTimes when() const override { return MeasureTimes::each_round; }
  [[nodiscard]] bool reads_training_rows() const override { return false; }
  [[nodiscard]] std::string refusal(const MeasureProblem<T>& problem) const override {
    return problem.has_clock ? "" : "measures simulated time, which needs [network] or [devices]: add one of these tables";
  }

  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    if (view.costs.timeline == nullptr || view.costs.timeline->clients.empty()) return;
    const CollectiveSizes sizes = collective_sizes(view.costs.timeline->clients);
    double server = 0;
    for (const ClientTimes& client : view.costs.timeline->clients) {
      const double seconds = client.down_s + client.message_s + client.up_s;
      if (seconds > server) server = seconds;
    }
    row.set("parameter_server_s", server);
    row.set("ring_all_reduce_s", ring_all_reduce_s(sizes));
    row.set("tree_all_reduce_s", tree_all_reduce_s(sizes));
    row.set("all_gather_s", all_gather_s(sizes));
  }
};

FL_REGISTER_MEASURE(CollectiveTimes, NoOptions, "collective_times",
                    "simulated seconds of the round's messages by a server, a ring, a tree and all-gather", "Thakur et al., IJHPCA 2005");

}  // namespace
}  // namespace fl
