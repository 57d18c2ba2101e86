#include "scenarios/file/cost_section.hpp"

#include "scenarios/file/section_fields.hpp"

namespace fl {

Section costs_section(CostOptions& costs, const Part& devices) {
  Section section{.path = "costs",
                  .doc =
                      "The cost of computing, in place of what the parts state: for parts that state none, such as a model in Python "
                      "or a plug-in, and to try other numbers. Needs [devices]."};
  const auto number = [&section](const char* name, std::optional<double>& value, const std::string& unit, const std::string& doc) {
    optional_number(section.keys, name, value, doc).at_least(0).at_most(1e24).unit(unit);
  };
  const std::string bytes = "bytes that are read or written for ", passes = "numbers that are read or written per ";
  number("model_flops", costs.model_flops, "1/row", "operations of a gradient for each of its rows, forward and backward");
  number("model_bytes", costs.model_bytes, "byte/row", bytes + "each row of a gradient, forward and backward");
  number("local_flops", costs.local_flops, "1/step", "operations of a local step without its gradient");
  number("local_bytes", costs.local_bytes, "byte/step", bytes + "a local step without its gradient");
  number("compressor_passes", costs.compressor_passes, "", passes + "entry by the operators of clients beyond their input");
  number("compressor_operations", costs.compressor_operations, "", "operations per entry of the operators of clients");
  number("feedback_passes", costs.feedback_passes, "", passes + "parameter by the clients' feedback, its input included");
  number("feedback_operations", costs.feedback_operations, "", "operations per parameter of the clients' feedback");
  number("postprocessor_passes", costs.postprocessor_passes, "", passes + "parameter by the clients' postprocessor");
  number("postprocessor_operations", costs.postprocessor_operations, "", "operations per parameter of the clients' postprocessor");
  section.validate = [&costs, &devices](Problems& problems) {
    if (costs == CostOptions{} || devices.kind != "none") return;
    problems.push_back({"", "has no effect without [devices], whose rates make seconds of costs; add that table, or drop [costs]"});
  };
  return section;
}

}  // namespace fl
