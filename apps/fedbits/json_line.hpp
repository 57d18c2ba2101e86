// An event as a JSON object on one line, built key by key, for `--log-json` and `--log json`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "scenarios/results/run_record.hpp"
#include "study/output/json.hpp"

namespace fl {

class JsonLine {
 public:
  explicit JsonLine(const std::string& event) { add("event", event); }
  void add_json(std::string_view key, const std::string& json) {
    text_ += (text_.size() > 1 ? "," : "") + json_text(std::string(key)) + ":" + json;
  }
  void add(std::string_view key, const std::string& text) { add_json(key, json_text(text)); }
  void add(std::string_view key, const char* text) { add_json(key, json_text(text)); }
  void add(std::string_view key, std::uint64_t number) { add_json(key, std::to_string(number)); }
  void add(std::string_view key, double number) { add_json(key, json_number(number)); }
  void add(std::string_view key, bool flag) { add_json(key, flag ? "true" : "false"); }
  void add(std::string_view key, RunStatus status) { add(key, std::string(to_string(status))); }
  template <class Columns, class Record>
  void add_columns(const Columns& columns, const Record& record) {
    for (const auto& column : columns) std::visit([&](auto member) { add(column.name, record.*member); }, column.member);
  }
  [[nodiscard]] std::string text() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

}  // namespace fl
