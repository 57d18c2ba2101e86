// The combination of a table that is a value of a sweep axis with the table of the scenario file at the axis' key (the base).
//
//   - Keys that the value names are taken from the value.
//   - Keys of the table itself are inherited from the base: unit, scope, bucket and exclude of a compressor, clients of the partition, l2,
//     nonconvex, weights and keep of the model, absent and absent_decay of the participation, average and statistics of the server. A
//     method of an axis is thus compressed in the same unit as the others unless it names another.
//   - Options of the part are inherited where `kind` is the base's or is not named. Options that stand for each other (k and ratio) replace
//     each other.
//   - A table of `data` that names a data set inherits nothing; nor does a value that is no table.
#pragma once

#include <set>
#include <string>

#include "scenarios/file/config_tree.hpp"

namespace fl {

// Returns the keys of a table that are not its part's, such as unit of "compressor.up"; none for tables without a part.
[[nodiscard]] const std::set<std::string>& keys_of_table(const std::string& path);

// Returns the value with what it inherits from `base`, which may be null. `path` is the axis' key.
[[nodiscard]] Node with_inherited(Node value, const Node* base, const std::string& path);

// Returns true if the value takes the member `key` of the base.
[[nodiscard]] bool inherits(const Node& value, const Node& base, const std::string& path, const std::string& key);

}  // namespace fl
