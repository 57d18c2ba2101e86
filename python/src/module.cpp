// The extension module fedbits._core: operators and the descriptions of parts, with types of Python. The classes that users see are made in
// fedbits/compressors.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/state/checksum.hpp"
#include "python/src/bindings.hpp"
#include "python/src/calls.hpp"
#include "python/src/exchange.hpp"
#include "python/src/operator.hpp"
#include "python/src/planning.hpp"
#include "python/src/require_finite.hpp"
#include "python/src/scenario.hpp"
#include "python/src/simulator.hpp"
#include "python/src/store.hpp"
#include "python/src/values.hpp"
#include "study/machine/version_text.hpp"

using namespace nanobind::literals;

namespace fl::python {

namespace {

// ---- descriptions of parts

nb::dict description_of(const std::string& role, const std::string& name) {
  const Registry& registry = Registry::instance();
  const PartInfo& info = registry.info(role, name);
  Options options = registry.default_options(role, name);
  Schema schema = options.schema();
  nb::list fields;
  for (const Field& field : schema.fields()) {
    nb::dict one;
    one["name"] = field.name;
    one["type"] = field.type;
    one["doc"] = field.doc;
    one["default"] = object_of(field.value());
    one["choices"] = field.choices;
    one["constraint"] = field.constraint();
    one["unit"] = field.unit_text;
    one["required"] = field.is_required;
    fields.append(one);
  }
  nb::dict result;
  result["name"] = info.name;
  result["summary"] = info.summary;
  result["source"] = info.source;
  result["fields"] = fields;
  return result;
}

// ---- operators

template <class T>
void bind_sent(nb::module_& module, const char* name) {
  nb::class_<Sent<T>>(module, name)
      .def("bits",
           [](const Sent<T>& self) {
             const WithoutLock released;
             return self.bits();
           })
      .def("elements", &Sent<T>::elements)
      .def("write_vector",
           [](const Sent<T>& self, std::size_t part, Vector<T> out) {
             const std::span<T> to = span_of(out);
             const WithoutLock released;
             self.write_vector(part, to);
           })
      .def("bytes", [](const Sent<T>& self) {
        const std::vector<std::vector<std::byte>> all = [&] {
          const WithoutLock released;
          return self.bytes();
        }();
        nb::list parts;
        for (const std::vector<std::byte>& bytes : all) parts.append(nb::bytes(bytes.data(), bytes.size()));
        return parts;
      });
}

template <class T>
void bind_exchange(nb::module_& module, const char* name) {
  using One = Exchange<T>;
  nb::class_<One>(module, name)
      .def(
          "__init__",
          [](One* self, Operator<T>& op, std::uint64_t seed, std::uint32_t client, std::uint32_t round, double step_size,
             std::optional<Vector<T>> error, std::optional<Vector<T>> state, std::optional<Vector<T>> shared) {
            new (self) One(op, {.seed = seed, .client = client, .round = round, .step_size = step_size},
                           {.error = span_of(error), .state = span_of(state), .shared = span_of(shared)});
          },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>(), nb::keep_alive<1, 9>(), "operator"_a, "seed"_a,
          "client"_a, "round"_a, "step_size"_a, "error"_a.none(), "state"_a.none(), "shared"_a.none())
      .def_prop_ro("is_over", &One::is_over)
      .def("send",
           [](nb::handle_t<One> self, Vector<const T> x) {
             One& exchange = nb::cast<One&>(self);
             const std::span<std::byte> bytes = [&] {
               const WithoutLock released;
               return exchange.send(span_of(x));
             }();
             return nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(bytes.data(), {bytes.size()}, self);
           })
      .def("receive", [](One& self, const std::vector<Vector<const std::uint8_t>>& messages, Vector<T> out) {
        std::vector<std::span<const std::byte>> spans;
        for (const Vector<const std::uint8_t>& one : messages) spans.push_back(std::as_bytes(span_of(one)));
        const std::span<T> to = span_of(out);
        const WithoutLock released;
        self.receive(spans, to);
      });
}

template <class T>
void bind_operator(nb::module_& module, const char* name) {
  using Op = Operator<T>;
  const auto key_of = [](std::uint64_t seed, std::uint32_t client, std::uint32_t round, double step_size) {
    return MessageKey{.seed = seed, .client = client, .round = round, .step_size = step_size};
  };
  nb::class_<Op>(module, name)
      .def(
          "__init__",
          [](Op* self, const std::string& kind, const nb::dict& options, const std::vector<std::vector<std::size_t>>& tensors,
             const std::string& scope, std::size_t bucket) {
            new (self) Op(kind, options_of("compressor", kind, table_of(options)),
                          Shape{.tensors = tensors, .scope = scope_of(scope), .bucket = bucket});
          },
          "kind"_a, "options"_a, "tensors"_a, "scope"_a, "bucket"_a)
      .def_prop_ro("size", &Op::size)
      .def_prop_ro("state_size", &Op::state_size)
      .def_prop_ro("shared_size", &Op::shared_size)
      .def_prop_ro("num_phases", &Op::num_phases)
      .def("contract", [](const Op& self) { return as_dict(self.contract()); })
      .def("read_initial_shared",
           [](const Op& self, std::uint64_t seed, Vector<T> out) { std::ranges::copy(self.initial_shared(seed), out.data()); })
      .def("compress",
           [key_of](Op& self, Vector<const T> x, std::uint64_t seed, std::uint32_t client, std::uint32_t round, double step_size,
                    std::optional<Vector<T>> memory, std::optional<Vector<T>> state, std::optional<Vector<T>> shared, bool is_finite) {
             const std::span<T> kept = span_of(memory), own = span_of(state), common = span_of(shared);
             const WithoutLock released;
             return self.compress(span_of(x), key_of(seed, client, round, step_size), kept, own, common,
                                  is_finite ? Input::finite : Input::unknown);
           })
      .def("decode", [key_of](Op& self, const nb::list& phases, std::uint64_t seed, std::uint32_t client, std::uint32_t round,
                              double step_size, std::optional<Vector<T>> shared, Vector<T> out) {
        std::vector<std::vector<std::byte>> parts;
        for (const nb::handle one : phases) {
          const auto bytes = nb::cast<nb::bytes>(one);
          const auto* first = static_cast<const std::byte*>(bytes.data());
          parts.emplace_back(first, first + bytes.size());
        }
        const std::span<T> common = span_of(shared), to = span_of(out);
        const WithoutLock released;
        self.decode(parts, key_of(seed, client, round, step_size), common, to);
      });
}

}  // namespace

ScopeKind scope_of(const std::string& scope) {
  return scope == "model" ? ScopeKind::model : scope == "tensor" ? ScopeKind::tensor : ScopeKind::bucket;
}

nb::dict as_dict(const Contract& contract) {
  const auto number = [](const std::optional<double>& value) -> nb::object { return value ? nb::object(nb::float_(*value)) : nb::none(); };
  nb::dict result;
  result["kappa"] = number(contract.kappa);
  result["delta"] = number(contract.delta);
  result["omega"] = number(contract.omega);
  const auto in_expectation = [](Contract::Holds holds) { return holds == Contract::Holds::in_expectation; };
  result["kappa_in_expectation"] = contract.kappa && in_expectation(contract.kappa_holds);
  result["delta_in_expectation"] = contract.delta && in_expectation(contract.delta_holds);
  result["linear"] = contract.linear;
  result["domain"] = to_string(contract.domain);
  result["no_memory"] = contract.no_memory;
  return result;
}

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // a hook that PyTorch holds when Python ends is never destroyed, and its operators neither
  nb::exception<Error> error(module, "Error", PyExc_RuntimeError);
  nb::exception<ConfigError>(module, "ConfigError", error);
  nb::exception<Overflow>(module, "MessageOverflow", error);
  translate_stops();
  module.attr("version") = FL_VERSION;
  module.attr("build_level") = build_level();
  module.attr("build_compiler") = build_compiler();
  module.def(
      "names", [](const std::string& role) { return Registry::instance().names(role); }, "role"_a);
  module.def("check_options", [](const std::string& role, const std::string& kind, const nb::dict& options) {
    static_cast<void>(options_of(role, kind, table_of(options)));
  });
  module.def("describe", &description_of, "role"_a, "name"_a);
  // XXH64 of bytes in pieces, each with its length before it.
  module.def("checksum", [](const nb::list& pieces) {
    Hash64 hash;
    for (const nb::handle one : pieces) {
      Vector<const std::uint8_t> bytes;
      if (!nb::try_cast(one, bytes)) throw nb::type_error("a checksum is one of arrays of bytes");
      hash.add_value<std::uint64_t>(bytes.size()).add_values(std::span<const std::uint8_t>(bytes.data(), bytes.size()));
    }
    return hash.value();
  });
  module.def("require_finite32", [](Vector<const float> vector) { require_finite(span_of(vector), "the vector"); });
  module.def("require_finite64", [](Vector<const double> vector) { require_finite(span_of(vector), "the vector"); });
  bind_sent<float>(module, "Sent32");
  bind_sent<double>(module, "Sent64");
  bind_operator<float>(module, "Operator32");
  bind_operator<double>(module, "Operator64");
  bind_exchange<float>(module, "Exchange32");
  bind_exchange<double>(module, "Exchange64");
  bind_feedback(module);
  bind_parts(module);
  bind_planning(module);
  bind_scenario(module);
  bind_simulator(module);
  bind_store(module);
}

}  // namespace fl::python
