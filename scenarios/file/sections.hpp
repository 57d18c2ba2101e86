// The layout of a scenario file: which table holds which keys. The reader, the canonical writer and the reference documentation all
// walk this one description, so they cannot disagree.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "scenarios/file/scenario.hpp"

namespace fl {

// One table of a scenario file, bound to the scenario that it fills.
struct Section {
  enum class Presence { optional, required };  // of the part
  std::string path = {};                       // "compressor.up"; "" = above the first table
  std::string doc = {};                        // for the reference
  std::string role = {};                       // of its part; "" = it has none
  Part* part = nullptr;
  Presence presence = Presence::required;
  std::string unwritten_kind = {};                  // a scenario does not mention this part unless it has options to write
  Schema keys = {};                                 // besides the part's own
  std::vector<std::string> only_without_part = {};  // keys that mean nothing once there is a part; it may reuse their names
  std::function<bool(const Field&)> is_idle =
      {};                                        // keys that mean nothing with the part; they are not written, and setting them is an error
  std::string shorthand = {};                    // the key that a value in the place of the table sets; "" = none
  std::function<void(Problems&)> validate = {};  // conditions between keys; `where` of a problem names the key
};

// All tables of `scenario`, in the order in which they are written; some ([compressor]) only hold other tables. The scenario must outlive
// them and keep its address.
[[nodiscard]] std::vector<Section> sections_of(Scenario& scenario);
// Returns the tables with the paths in `wanted` alone: describing a table costs more than reading it.
[[nodiscard]] std::vector<Section> sections_of(Scenario& scenario, const std::set<std::string>& wanted);
// The paths of all tables, in the same order.
[[nodiscard]] std::vector<std::string> section_paths(const Scenario& scenario);

// Takes away the keys that the section's part makes meaningless; called once the part's kind is known.
void drop_idle_keys(Section& section);

}  // namespace fl
