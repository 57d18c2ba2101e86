// Words of the field for what a scenario calls otherwise: errors lead from "lr" to local.learning_rate, from "fedadam" to server.kind =
// "adam".
//
// The words are data (fl_core/config/field_words.cpp). A target is written
//   local.batch                 a key, by the table and its name; "rounds" stands above the first table
//   [compressor.up]             a table
//   server.kind=adam            a value of a key; of `kind`, a part
//   data.name=fashion-mnist     a known data set
// tests/scenarios/field_words_test.cpp holds every target to the schema, the registry and the list of data sets.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

// One line of the table: words with commas between, what they mean, and what else belongs to it.
struct FieldWord {
  const char* words;
  const char* target;
  const char* with = "";  // further settings, such as "local.proximal_mu=0.01", with commas between
  const char* note = "";  // a remark for the reader
};
[[nodiscard]] FL_API std::span<const FieldWord> field_words();

// A target, taken apart.
struct Meaning {
  std::string table;              // "local", "compressor.up"; "" = above the first table
  std::string key;                // "learning_rate"; "" where the table itself is meant
  std::string value;              // "adam"; "" where the key is meant
  std::vector<std::string> with;  // settings of other keys
  std::string note;
  // Returns what a list of candidates would hold: the value, the key, or the last name of the table.
  [[nodiscard]] std::string name() const;
};

// Returns the meanings of a word, the likeliest first; none for a word that is not in the table. Capitals, "-", "_" and spaces do not
// matter.
[[nodiscard]] FL_API std::vector<Meaning> meanings_of(const std::string& word);

// What a word stands for in a scenario: a key or table, or a value such as the name of a part.
enum class Sought { key, value };

// Returns `; did you mean "c"?` for the candidate that the word means or, by its spelling, is nearest to. If the word means something that
// is no candidate, the text says where that stands: `; did you mean "learning_rate" (in [local])?`. Returns "" if nothing is near.
[[nodiscard]] FL_API std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates, Sought sought);

// Returns what an error says of a key that must be given and is not: that it is missing, and what it means.
[[nodiscard]] FL_API std::string missing_text(const std::string& meaning);

// Returns the candidate that the word means as a value, or "".
[[nodiscard]] FL_API std::string meant_value(const std::string& word, const std::vector<std::string>& candidates);

// Returns the table of a scenario whose `kind` has parts of this role: "compressor.up" of "compressor"; "" for layers.
[[nodiscard]] FL_API std::string table_of_role(const std::string& role);

}  // namespace fl
