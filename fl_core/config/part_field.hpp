// Options that are parts: an operator that wraps other operators names them, each with its own options.
//
//   struct InducedOptions { NamedPart biased{"top_k", {}}; };
//   part_field(schema, "biased", "compressor", o.biased, "the biased operator");       biased = { kind = "top_k", ratio = 0.1 }
//
// A default without options means the part's own defaults. The part need not be registered yet when the default is declared.
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/aliases.hpp"
#include "fl_core/config/options.hpp"

namespace fl {

FL_API Field& part_field(Schema& schema, std::string name, std::string role, NamedPart& value, std::string doc);
FL_API Field& part_field(Schema& schema, std::string name, std::string role, std::vector<NamedPart>& value, std::string doc);

// Returns the part with its options. A part without options gets the defaults of the registry.
[[nodiscard]] FL_API NamedPart with_options(const std::string& role, const NamedPart& part);

}  // namespace fl
