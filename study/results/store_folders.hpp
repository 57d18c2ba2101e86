// The folders of a study's store: where it lies by default, which stores exist, and what of it must not be written over.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/results/run_store.hpp"
#include "scenarios/sweep/sweep_share.hpp"

namespace fl {

// Results of a scenario called NAME are stored in fedbits-out/NAME unless --out is given. Scenarios with the same name share a store.
inline constexpr const char* kResultsFolder = "fedbits-out";
// Returns that folder. Characters other than letters, digits, dots, dashes and underscores become dashes.
[[nodiscard]] FL_API std::filesystem::path default_folder(const std::vector<Cell>& cells);
// Returns the folders of kResultsFolder, itself included, that hold a store; sorted.
[[nodiscard]] FL_API std::vector<std::filesystem::path> stores_here();
// Returns `asked`, or the only existing store. Throws ConfigError, which lists the existing stores, if there is none or more than one, or
// if `asked` is a folder of stores.
[[nodiscard]] FL_API std::filesystem::path store_named(const std::string& command, const std::string& asked);

[[nodiscard]] FL_API std::filesystem::path checkpoint_folder(const std::string& out);
[[nodiscard]] FL_API std::filesystem::path tuning_folder(const std::string& out);
// Returns the folder of a part of a sweep, which has a store of its own. `out` is that of the whole sweep, and of a sweep in one part.
[[nodiscard]] FL_API std::string shard_folder(const std::string& out, const std::optional<SweepShard>& shard);

// Returns whether the store holds the run finished and whole. `warn` hears of a damaged one.
[[nodiscard]] FL_API bool has_whole(const RunStore& store, const std::string& run, const std::function<void(const std::string&)>& warn);

// Throws ConfigError if some of the cells' runs have begun, because starting them again would lose their checkpoints.
FL_API void refuse_begun_runs(const RunStore& store, const std::vector<Cell>& cells, const std::string& out);
// Throws ConfigError if finished runs of this scenario's name were made under another analysis plan than that of `cells`.
FL_API void refuse_other_plan(const RunStore& store, const std::vector<Cell>& cells);

}  // namespace fl
