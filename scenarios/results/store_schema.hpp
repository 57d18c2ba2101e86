// The tables of a store, and whether a file has them.
#pragma once

#include <filesystem>
#include <string>

#include "scenarios/results/sqlite.hpp"

namespace fl::store {

void create_schema(sqlite::Database& database);
void create_plugin_table(sqlite::Database& database);
// Stores without a run from a plug-in lack the table, so that they are the same as before there were plug-ins.
[[nodiscard]] bool has_plugin_table(sqlite::Database& database);

// Returns false when the file holds nothing yet, as after a crash before the first commit. Throws StoreError for a file of another
// version or another program, and sqlite::DamagedError where a table or view is not what it was made as.
[[nodiscard]] bool holds_our_schema(sqlite::Database& database, const std::filesystem::path& file);

}  // namespace fl::store
