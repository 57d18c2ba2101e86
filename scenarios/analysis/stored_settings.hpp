// The settings of a study's runs, key by key, and which of them all runs share.
//
// One run stands for its cell: the runs of a cell differ in their seeds alone.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "scenarios/analysis/study.hpp"

namespace fl {

// The settings of one resolved scenario: dotted keys with their values in TOML syntax.
using KeyValues = std::map<std::string, std::string>;

class StoredSettings {
 public:
  // Takes the first run of each cell. The study outlives it.
  explicit StoredSettings(const Study& study);

  [[nodiscard]] std::size_t size() const { return runs_.size(); }
  [[nodiscard]] const RunRecord& record(std::size_t run) const { return *records_[run]; }
  [[nodiscard]] const StudyCell& cell(std::size_t run) const { return *cells_[run]; }
  // Returns the value of a key in a run, or "" if the run does not have the key.
  [[nodiscard]] const std::string& value(std::size_t run, const std::string& key) const;
  // Returns the keys of any run that begin with `prefix`, in the order of the alphabet.
  [[nodiscard]] std::vector<std::string> keys(const std::string& prefix) const;
  // Returns the different values of a key, in the order of the runs; "" for runs without it.
  [[nodiscard]] std::vector<std::string> values(const std::string& key) const;
  [[nodiscard]] bool is_shared(const std::string& key) const { return values(key).size() == 1; }
  // Returns the keys of the study's axes, in the order of the scenario file.
  [[nodiscard]] const std::vector<std::string>& axes() const { return axes_; }
  // Returns the axis that sets a key: the key itself, or a table that holds it. "" if no axis does.
  [[nodiscard]] std::string axis_of(const std::string& key) const;
  // Returns a run's label on an axis, or "".
  [[nodiscard]] std::string label(std::size_t run, const std::string& axis) const;

 private:
  std::vector<KeyValues> runs_;
  std::vector<const RunRecord*> records_;
  std::vector<const StudyCell*> cells_;
  std::vector<std::string> axes_;
};

// Returns whether a key numbers the repetitions of a run: the seeds, and what follows from them.
[[nodiscard]] FL_API bool is_of_seeds(const std::string& key);

}  // namespace fl
