// Rows of sequences, cut from stretches of tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fl_core/data/dataset.hpp"
#include "scenarios/data/format_options.hpp"
#include "scenarios/data/memory_limit.hpp"

namespace fl {

// Tokens first .. last-1, which rows lie within.
struct Stretch {
  std::size_t first = 0, last = 0;
  [[nodiscard]] std::size_t size() const { return last - first; }
};

// Returns the number of rows in a stretch. A row takes `sequence` tokens and the one that follows.
[[nodiscard]] std::size_t rows_in(const Stretch& stretch, const TextOptions& options);

// Splits a stretch in time: its last `test_fraction`, rounded down to whole tokens, is the second.
struct TimeSplit {
  Stretch train, test;
};
[[nodiscard]] TimeSplit split_in_time(const Stretch& stretch, double test_fraction);

// The rows of all stretches, one client each: tokens [m,sequence] and labels. `names` [vocabulary]. Throws ConfigError when they do not fit
// into memory.
template <class T>
[[nodiscard]] Dataset<T> cut_rows(std::span<const std::int32_t> tokens, std::span<const Stretch> stretches, const TextOptions& options,
                                  const std::vector<std::string>& names, const std::string& name, const MemoryLimit& memory = {});

// Keeps the first `rows` rows and the clients that have some of them. 0 keeps all.
template <class T>
void keep_first_rows(Dataset<T>& data, std::size_t rows, const std::filesystem::path& file);

}  // namespace fl
