// JSON: texts and numbers as exports write them, and the log of a run, a line for each round that is measured.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "server/run_record.hpp"

namespace fl {

[[nodiscard]] std::string json_text(const std::string& text);  // quoted
[[nodiscard]] std::string json_number(double value);           // null for NaN; 1e999, which reads as infinity, for infinity

// `run --log-json FILE`: one object per line, the columns of rounds.csv after "run". Each line is there as soon as its round is over.
class JsonLog {
 public:
  explicit JsonLog(const std::string& file);  // "" logs nothing. StoreError when the file cannot be written
  void add(const std::string& run, const RoundRow& row);

 private:
  void write(std::uint64_t value) { out_ << value; }
  void write(double value) { out_ << json_number(value); }
  std::string file_;
  std::ofstream out_;
};

}  // namespace fl
