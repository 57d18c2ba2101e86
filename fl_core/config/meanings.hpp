// Maps terms of the field to the keys and values of a scenario, for error texts: "lr" leads to local.learning_rate, "fedadam" to
// server.kind = "adam".
//
// The terms are data (fl_core/config/field_words.cpp). A target has one of these forms:
//   local.batch                 a key, by the table and its name; "rounds" stands above the first table
//   [compressor.up]             a table
//   server.kind=adam            a value of a key; of `kind`, a part
//   data.name=fashion-mnist     a known data set
// tests/scenarios/field_words_test.cpp checks every target against the schema, the registry and the list of data sets.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

// One row of the table: terms separated by commas, their meaning, and settings that belong to it.
struct FieldWord {
  const char* words;
  const char* target;
  const char* with = "";  // further settings, separated by commas, such as "local.proximal_mu=0.01"
  const char* note = "";  // a remark for the reader
};
[[nodiscard]] FL_API std::span<const FieldWord> field_words();

// Terms for something that fedbits does not have, and the sentence that says so.
struct AbsentThing {
  const char* words;
  const char* sentence;
};
[[nodiscard]] FL_API std::span<const AbsentThing> absent_things();
// Returns the sentence for a term, or "".
[[nodiscard]] FL_API std::string absence_of(const std::string& word);

// A parsed target.
struct Meaning {
  std::string table;              // "local", "compressor.up"; "" = above the first table
  std::string key;                // "learning_rate"; "" if the target is the table itself
  std::string value;              // "adam"; "" if the target is the key
  std::vector<std::string> with;  // settings of other keys
  std::string note;
  // Returns the entry that a list of candidates would contain: the value, the key, or the last name of the table.
  [[nodiscard]] std::string name() const;
};

// Returns the meanings of a term, the most likely one first, or an empty list for an unknown term. Case, "-", "_" and spaces are ignored.
[[nodiscard]] FL_API std::vector<Meaning> meanings_of(const std::string& word);

// The kind of item that a term replaces in a scenario: a key or table, or a value such as the name of a part.
enum class Sought { key, value };

// Returns `; did you mean "c"?` for the candidate that the term means or that is nearest in spelling. If the term means something that is
// not a candidate, the text gives its location: `; did you mean "learning_rate" (in [local])?`. For something that fedbits does not have
// the text says so. Returns "" if no candidate is near.
[[nodiscard]] FL_API std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates, Sought sought);

// Returns the error text for a required key that is missing, including the meaning of the key.
[[nodiscard]] FL_API std::string missing_text(const std::string& meaning);

// Returns the candidate that the word means as a value, or "".
[[nodiscard]] FL_API std::string meant_value(const std::string& word, const std::vector<std::string>& candidates);

// Returns the table of a scenario whose `kind` names parts of this role: "compressor.up" for "compressor"; "" for layers.
[[nodiscard]] FL_API std::string table_of_role(const std::string& role);

}  // namespace fl
