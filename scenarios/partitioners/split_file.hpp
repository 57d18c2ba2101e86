// A split as a text file: which training row belongs to which client.
//
//   # fedbits split
//   # data = mushrooms                 the training set, for people
//   # rows = 4                         training rows; held-out rows do not count
//   # clients = 2
//   # data_hash = 8f3c0e5a71d2b946     of the rows' labels and targets: the file fits these data and no others
//   row,client
//   0,1                                rows and clients are counted from 0, rows as the training set has them without held-out ones
//   1,0
//   2,-                                a row that no client holds; it takes no part in f
//   3,1
// Every row stands there exactly once, in any order. Lines with # may be left out, as by other programs; those that are there are checked.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/data/dataset.hpp"

namespace fl {

inline constexpr std::uint32_t kNoClient = 0xFFFFFFFFu;

struct SplitFile {
  std::string data{};                      // name of the training set
  std::vector<std::uint32_t> client_of{};  // [rows]; kNoClient = unused
  std::size_t num_clients = 0;
  std::optional<std::uint64_t> data_hash{};  // not in every file
};

FL_API void write_split(const SplitFile& split, std::ostream& out);

// Throws ConfigError that names the file, the line and what is wrong: a row twice or missing, a client without rows, numbers that are none.
[[nodiscard]] FL_API SplitFile read_split(const std::string& path);
// The same of a text; `path` is its name in errors.
[[nodiscard]] FL_API SplitFile parse_split(std::string_view text, const std::string& path);

// The rows of each client, ascending.
[[nodiscard]] FL_API std::vector<Shard> shards_of(const SplitFile& split);

}  // namespace fl
