// Creates the tables of a store and checks whether a file has them.
#pragma once

#include <filesystem>
#include <string>

#include "scenarios/results/sqlite.hpp"

namespace fl::store {

void create_schema(sqlite::Database& database);
void create_plugin_table(sqlite::Database& database);
// Returns whether the plug-in table exists. Stores without a run from a plug-in lack it, so they have the same schema as before plug-ins.
[[nodiscard]] bool has_plugin_table(sqlite::Database& database);

// Returns false if the file is still empty, as after a crash before the first commit. Throws StoreError for a file of another version or
// another program, and sqlite::DamagedError if a table or view differs from its original definition.
[[nodiscard]] bool holds_our_schema(sqlite::Database& database, const std::filesystem::path& file);

}  // namespace fl::store
