#include "python/src/python_part.hpp"

#include <nanobind/stl/string.h>

#include "fl_core/config/default_options.hpp"
#include "fl_core/config/registry.hpp"
#include "python/src/bindings.hpp"
#include "python/src/python_data.hpp"
#include "python/src/python_model.hpp"

namespace fl::python {

namespace {

nb::module_ registration() { return nb::module_::import_("fedbits.registration"); }

PythonOptions::Option option_of(nb::handle name, nb::handle value, nb::handle doc) {
  PythonOptions::Option option{.name = {}, .doc = {}, .value = false};
  read(name, "the name of an option", option.name);
  read(doc, "the description of " + option.name, option.doc);
  const Value found = value_of(value, option.name);
  std::visit(
      [&option](const auto& one) {
        if constexpr (std::is_constructible_v<decltype(option.value), decltype(one)>) option.value = one;
      },
      found.data);
  return option;
}

// Adds factories for both precisions.
template <template <class> class Interface, template <class> class Part>
void add_for_both(const std::string& role, const std::string& kind) {
  Registry& registry = Registry::instance();
  const auto factory = []<class T>(T) {
    return Factory<Interface<T>>(
        [](const Options& options) -> std::unique_ptr<Interface<T>> { return std::make_unique<Part<T>>(options.as<PythonOptions>()); });
  };
  registry.add(role, kind, Device::cpu, Precision::float32, factory(0.0f));
  registry.add(role, kind, Device::cpu, Precision::float64, factory(0.0));
}

void add_factories(const std::string& role, const std::string& kind) {
  if (role == "model") return add_for_both<Model, PythonModel>(role, kind);
  if (role == "data") return add_for_both<DataGenerator, PythonData>(role, kind);
  Registry::instance().add(role, kind, Device::cpu, Precision::float64,
                           Factory<Partitioner>([](const Options& options) -> std::unique_ptr<Partitioner> {
                             return std::make_unique<PythonPartitioner>(options.as<PythonOptions>());
                           }));
}

// Describes a part, with its options as (name, default, doc). A class that is defined again gets new options.
void register_part(const std::string& role, const std::string& kind, const std::string& summary, const nb::list& options) {
  PythonOptions made{.role = role, .kind = kind, .options = {}};
  for (const nb::handle one : options) made.options.push_back(option_of(one[0], one[1], one[2]));
  const bool is_known = Registry::instance().contains(role, kind);
  Registry::instance().describe({role, kind, summary, ""}, Options::of<PythonOptions>(made));
  if (!is_known) add_factories(role, kind);
  set_default_options(role, kind, Options::of<PythonOptions>(made));
}

}  // namespace

void describe(Schema& schema, PythonOptions& options) {
  for (PythonOptions::Option& option : options.options)
    std::visit([&](auto& value) { schema.field(option.name, value, option.doc); }, option.value);
}

PythonObject::PythonObject(const PythonOptions& options) {
  object_ = with_python([&] {
    nb::dict given;
    for (const PythonOptions::Option& option : options.options)
      std::visit([&](const auto& value) { given[nb::str(option.name.c_str())] = nb::cast(value); }, option.value);
    return registration().attr("make")(options.role, options.kind, given);
  });
}

PythonObject::~PythonObject() {
  const nb::gil_scoped_acquire acquired;
  object_.reset();
}

PythonFailure::PythonFailure(nb::python_error& error, std::size_t position) : GradientFailure("", position) {
  const nb::object value = nb::borrow(error.value());
  set_text(nb::cast<std::string>(registration().attr("text_of_failure")(value)));
  number_ = nb::cast<std::size_t>(registration().attr("keep_failure")(value));
}

void PythonFailure::name(std::uint32_t client, const std::string& when) {
  GradientFailure::name(client, when);
  const nb::gil_scoped_acquire acquired;
  registration().attr("note_failure")(number_, "client " + std::to_string(client) + ", " + when);
}

void bind_parts(nb::module_& module) {
  module.def("register_part", &register_part);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const PythonFailure&) {
      try {
        registration().attr("raise_failure")();
      } catch (nb::python_error& raised) {
        raised.restore();
      }
    }
  });
}

}  // namespace fl::python
