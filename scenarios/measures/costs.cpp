// The costs of a round, for all clients together.
#include "scenarios/measures/measure.hpp"

namespace fl {
namespace {

// Returns a column of whole numbers that every row has.
MeasureColumn count(const char* name, const char* unit, const char* definition) {
  return {.name = name, .unit = unit, .definition = definition, .empty = "never", .type = MeasureColumn::Type::count, .is_compared = false};
}

template <class T>
class Costs final : public Measure<T> {
 public:
  explicit Costs(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {count("clients", "clients", "size of the cohort"),
            count("elements_up", "entries", "values that all clients sent"),
            {.name = "bits_up_published",
             .unit = "bits",
             .definition = "what the clients sent as the method's publication counts it",
             .empty = "the method's publication has no count",
             .is_compared = false},
            {.name = "bits_up_entropy",
             .unit = "bits",
             .definition = "a lower bound of what an ideal code would need for the same messages",
             .empty = "the operator has no such bound",
             .is_compared = false},
            count("bits_up", "bits", "exact length of the encoded messages of all clients, headers included"),
            count("bits_down", "bits", "exact length of what the server sent to all clients, including the catch-up of absent ones"),
            {.name = "density",
             .unit = "share",
             .definition = "`elements_up` / (`clients` x parameters)",
             .empty = "no client took part",
             .is_compared = false},
            {.name = "residual_age",
             .unit = "rounds",
             .definition = "rounds since a client's last delivered message, mean over the clients of the cohort that have one",
             .empty = "no client of the cohort has one",
             .is_compared = false},
            count("refused", "clients", "clients whose vectors were not finite: they sent nothing")};
  }

  [[nodiscard]] bool reads_training_rows() const override { return false; }
  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    const RoundCosts& costs = view.costs;
    row.set_count("clients", costs.clients);
    row.set_count("elements_up", costs.elements_up);
    row.set("bits_up_published", costs.bits_up_published);
    row.set("bits_up_entropy", costs.bits_up_entropy);
    row.set_count("bits_up", costs.bits_up);
    row.set_count("bits_down", costs.bits_down);
    row.set("density",
            static_cast<double>(costs.elements_up) / (static_cast<double>(costs.clients) * static_cast<double>(view.model.size())));
    row.set("residual_age", costs.residual_age);
    row.set_count("refused", costs.refused);
  }
};

FL_REGISTER_MEASURE(Costs, NoOptions, "costs", "clients, entries and bits of a round", "");

}  // namespace
}  // namespace fl
