// Compares whole runs: every column of every round, then the final model's checksum.
#pragma once

#include <bit>
#include <string>
#include <variant>

#include "scenarios/sweep/cell_runner.hpp"
#include "tests/gpu/first_difference.hpp"

namespace fl::test {
namespace detail {

// Returns the name and both values of the first column that differs, "" if all are the same.
[[nodiscard]] inline std::string different_column(const Where& where, const RunResult& a, const RunResult& b, std::size_t r) {
  const RoundRow &x = a.rows[r], &y = b.rows[r];
  const std::string round = "round " + std::to_string(x.round) + ", ";
  const RoundBitsOfColumns x_bits = bits_of_columns(x), y_bits = bits_of_columns(y);
  for (std::size_t c = 0; c < kRoundColumns.size(); ++c) {
    if (x_bits[c] == y_bits[c]) continue;
    const auto text = [c](const RoundRow& row) {
      return std::visit([&row](auto member) { return word_text(row.*member); }, kRoundColumns[c].member);
    };
    return beginning(where, round + std::string(kRoundColumns[c].name)) + both(where, text(x), text(y));
  }
  for (std::size_t c = 0; c < x.more.size() && c < y.more.size(); ++c)
    if (bits_of(x.more[c]) != bits_of(y.more[c]))
      return beginning(where, round + a.record.columns[c].name) + both(where, word_text(x.more[c]), word_text(y.more[c]));
  return "";
}

}  // namespace detail

// Compares two finished runs bit by bit. The line names the first round and column that differ, else the checksum.
[[nodiscard]] inline testing::AssertionResult same_run(const Where& where, const RunResult& a, const RunResult& b) {
  for (const auto& [run, side] : {std::pair{&a, &where.on_first}, std::pair{&b, &where.on_second}})
    if (run->record.status != RunStatus::done)
      return difference(detail::beginning(where, "status") + "the run " + *side + " is not done: " + run->record.message);
  std::size_t first = a.rows.size(), count = 0;
  for (std::size_t r = 0; r < a.rows.size() && r < b.rows.size(); ++r)
    if (!same_bits(a.rows[r], b.rows[r]) && count++ == 0) first = r;
  if (count > 0)
    return difference(detail::different_column(where, a, b, first) + "; " + std::to_string(count) + " of " + std::to_string(a.rows.size()) +
                      " rounds differ, the checksums are " + detail::both(where, a.record.checksum, b.record.checksum));
  if (auto result = same_value(where, "number of rounds", a.rows.size(), b.rows.size()); !result) return result;
  if (auto result = same_value(where, "bits_up of the run", a.record.bits_up, b.record.bits_up); !result) return result;
  return same_value(where, "checksum of the model", a.record.checksum, b.record.checksum);
}

}  // namespace fl::test
