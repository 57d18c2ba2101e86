// Types of Python for the rounds of a feedback. fedbits/feedbacks.py makes the classes that users see.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.hpp"
#include "python/src/calls.hpp"
#include "python/src/feedback_rounds.hpp"

namespace fl::python {

namespace {

// channel, kind, options, scope, bucket
using OperatorTuple = std::tuple<std::string, std::string, nb::dict, std::string, std::int64_t>;

std::optional<Unit> unit_of(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  for (const Unit unit : {Unit::gradient, Unit::step, Unit::update})
    if (*name == to_string(unit)) return unit;
  throw ConfigError("unit is \"" + *name + "\"; it must be \"gradient\", \"step\" or \"update\"");
}

FeedbackSettings settings_of(const std::string& kind, const nb::dict& options, const std::vector<OperatorTuple>& operators,
                             const std::vector<std::vector<std::size_t>>& tensors, const std::vector<double>& weights,
                             const std::optional<std::string>& unit, std::uint64_t seed) {
  FeedbackSettings settings{.kind = kind,
                            .options = options_of("feedback", kind, table_of(options)),
                            .operators = {},
                            .tensors = tensors,
                            .weights = weights,
                            .unit = unit_of(unit),
                            .seed = seed};
  for (const auto& [channel, op, given, scope, bucket] : operators)
    settings.operators.push_back({channel, op, options_of("compressor", op, table_of(given)), scope_of(scope), bucket});
  return settings;
}

// Returns why a feedback works in the simulator alone, "" = it does not, and its channels.
nb::tuple facts_of(const std::string& kind, const nb::dict& options) {
  const auto feedback =
      make_part<Feedback<float>>("feedback", kind, options_of("feedback", kind, table_of(options)), Device::cpu, Precision::float32);
  std::string refused;
  try {
    require_no_simulator(kind, feedback->plan(), feedback->needs());
  } catch (const ConfigError& error) {
    refused = error.what();
  }
  std::vector<std::string> names;
  for (const ChannelSpec& channel : channels_of(feedback->plan(), {"model"})) names.push_back(channel.name);
  return nb::make_tuple(refused, names);
}

template <class T>
nb::bytes saved(FeedbackRounds<T>& self) {
  Archive archive;
  self.persist(archive);
  return nb::bytes(archive.bytes().data(), archive.bytes().size());
}

template <class T>
void restore(FeedbackRounds<T>& self, const nb::bytes& bytes) {
  Archive archive(std::span(static_cast<const std::byte*>(bytes.data()), bytes.size()));
  self.persist(archive);
  archive.finish();
}

template <class T>
void bind_rounds(nb::module_& module, const char* name) {
  using Rounds = FeedbackRounds<T>;
  nb::class_<Rounds>(module, name)
      .def("__init__", [](Rounds* self, const std::string& kind, const nb::dict& options, const std::vector<OperatorTuple>& operators,
                          const std::vector<std::vector<std::size_t>>& tensors, const std::vector<double>& weights,
                          const std::optional<std::string>& unit,
                          std::uint64_t seed) { new (self) Rounds(settings_of(kind, options, operators, tensors, weights, unit, seed)); })
      .def_prop_ro("round", &Rounds::round)
      .def_prop_ro("cohort", &Rounds::cohort)
      .def_prop_ro("unit", &Rounds::unit)
      .def_prop_ro("channels", &Rounds::channels)
      .def("contract", [](const Rounds& self, std::size_t channel) { return as_dict(self.contract(channel)); })
      .def("send",
           [](Rounds& self, std::uint32_t client, Vector<const T> vector, double step_size, bool is_finite) {
             const WithoutLock released;
             return self.send(client, span_of(vector), step_size, is_finite ? Input::finite : Input::unknown);
           })
      .def("discard", &Rounds::discard)
      .def("receive",
           [](Rounds& self, const std::vector<double>& weights, Vector<double> estimate) {
             const std::span<double> out = span_of(estimate);
             const WithoutLock released;
             self.receive(weights, out);
           })
      .def("read_error", [](Rounds& self, std::uint32_t client, Vector<T> out) { return self.read_error(client, span_of(out)); })
      .def("save", &saved<T>)
      .def("restore", &restore<T>);
}

}  // namespace

void bind_feedback(nb::module_& module) {
  module.def("feedback_facts", &facts_of);
  bind_rounds<float>(module, "Feedback32");
  bind_rounds<double>(module, "Feedback64");
}

}  // namespace fl::python
