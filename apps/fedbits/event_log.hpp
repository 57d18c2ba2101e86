// `serve --log text|json` and `join --log text|json`: one line on stderr for each event, by spdlog. docs/status.md lists events and fields.
//
//   text   2026-11-23T12:00:00.125Z info peer_joined clients="0-9" address="127.0.0.1:40000"
//   json   {"time":"2026-11-23T12:00:00.125Z","level":"info","event":"peer_joined","clients":"0-9","address":"127.0.0.1:40000"}
//
// Levels are warn (refusals, peers that leave), info (all else) and debug (rounds). With --log the level is info, with --quiet it is error
// and with --verbose debug. Without --log, events that have a sentence are printed as sentences, from the level warn on as all messages.
// Other messages of the program are events called "message". Lines never contain keys, tokens or contents of data.
#pragma once

#include <spdlog/common.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apps/fedbits/run_support.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace spdlog {  // NOLINT(readability-identifier-naming): a library's
class logger;
}

namespace fl {

enum class LogForm { sentences, text, json };

// Adds the option --log.
void add_log_option(CLI::App& command, LogForm& form);

// Events may be logged from several threads.
class EventLog {
 public:
  using Value = std::variant<std::string, std::uint64_t, double, bool>;
  using Fields = std::vector<std::pair<std::string_view, Value>>;

  // Chooses the level and the form of all messages of this process.
  EventLog(LogForm form, bool quiet, int verbose);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void info(std::string_view event, const Fields& fields, const std::string& sentence = {}) const;
  void warn(std::string_view event, const Fields& fields, const std::string& sentence = {}) const;
  void debug(std::string_view event, const Fields& fields, const std::string& sentence = {}) const;
  [[nodiscard]] LogForm form() const { return form_; }
  [[nodiscard]] bool is_quiet() const { return is_quiet_; }

 private:
  void write(spdlog::level::level_enum level, std::string_view event, const Fields& fields, const std::string& sentence) const;

  LogForm form_;
  bool is_quiet_;
  std::shared_ptr<spdlog::logger> events_;  // nullptr for sentences
};

// Appends the columns of a round or a run that have a value.
void append_columns(EventLog::Fields& fields, const RoundRow& row);
void append_columns(EventLog::Fields& fields, const RunRecord& record);

}  // namespace fl
