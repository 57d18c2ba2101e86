// Options that are parts: an operator around other operators names them, each with options of its own.
//
//   struct InducedOptions { NamedPart biased{"top_k", {}}; };
//   part_field(schema, "biased", "compressor", o.biased, "the biased operator");       biased = { kind = "top_k", ratio = 0.1 }
//
// A default without options stands for the part's own defaults, which need not be registered yet when the default is written down.
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/aliases.hpp"
#include "fl_core/config/options.hpp"

namespace fl {

FL_API Field& part_field(Schema& schema, std::string name, std::string role, NamedPart& value, std::string doc);
FL_API Field& part_field(Schema& schema, std::string name, std::string role, std::vector<NamedPart>& value, std::string doc);

// The part with its options, those of the registry where it has none of its own.
[[nodiscard]] FL_API NamedPart with_options(const std::string& role, const NamedPart& part);

}  // namespace fl
