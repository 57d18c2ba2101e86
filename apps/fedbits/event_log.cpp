#include "apps/fedbits/event_log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "apps/fedbits/json_line.hpp"
#include "fl_core/config/printable.hpp"

namespace fl {

namespace {

constexpr const char* kTime = "%Y-%m-%dT%H:%M:%S.%eZ";

// The text of a message as a JSON string, which is printable whatever it contains.
class JsonMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string text = json_text({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  [[nodiscard]] std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<JsonMessage>(); }
};

std::shared_ptr<spdlog::logger> logger_of(const std::string& name, const std::string& pattern) {
  auto logger = std::make_shared<spdlog::logger>(name, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<JsonMessage>('*').set_pattern(pattern);
  logger->set_formatter(std::move(formatter));
  logger->flush_on(spdlog::level::trace);
  return logger;
}

std::string text_of(const EventLog::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return json_text(printable(*text));
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return std::to_string(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return json_number(std::get<double>(value));
}

template <class Columns, class Record>
void append(EventLog::Fields& fields, const Columns& columns, const Record& record) {
  const auto add = [&fields](std::string_view name, const auto& value) {
    using Type = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Type, RunStatus>)
      fields.emplace_back(name, std::string(to_string(value)));
    else if constexpr (std::is_same_v<Type, double>)
      std::isnan(value) ? void() : void(fields.emplace_back(name, value));
    else
      fields.emplace_back(name, value);
  };
  for (const auto& column : columns) std::visit([&](auto member) { add(column.name, record.*member); }, column.member);
}

}  // namespace

void add_log_option(CLI::App& command, LogForm& form) {
  command.add_option("--log", form, "log events on stderr, one line each: text or json (default: sentences, of warnings only)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, LogForm>{{"text", LogForm::text}, {"json", LogForm::json}}));
}

EventLog::EventLog(LogForm form, bool quiet, int verbose) : form_(form), is_quiet_(quiet) {
  choose_log_level(quiet, verbose);
  if (form == LogForm::sentences) return;
  const std::string time(kTime);
  const bool is_json = form == LogForm::json;
  const std::string head = is_json ? "{\"time\":\"" + time + "\",\"level\":\"%l\"," : time + " %l ";
  spdlog::set_default_logger(logger_of("fedbits", is_json ? head + "\"event\":\"message\",\"message\":%*}" : head + "message message=%*"));
  events_ = logger_of("events", head + "%v");
  const auto level = quiet ? spdlog::level::err : verbose > 0 ? spdlog::level::debug : spdlog::level::info;
  spdlog::set_level(level);
  events_->set_level(level);
}

EventLog::~EventLog() = default;

void EventLog::info(std::string_view event, const Fields& fields, const std::string& sentence) const {
  write(spdlog::level::info, event, fields, sentence);
}
void EventLog::warn(std::string_view event, const Fields& fields, const std::string& sentence) const {
  write(spdlog::level::warn, event, fields, sentence);
}
void EventLog::debug(std::string_view event, const Fields& fields, const std::string& sentence) const {
  write(spdlog::level::debug, event, fields, sentence);
}

void EventLog::write(spdlog::level::level_enum level, std::string_view event, const Fields& fields, const std::string& sentence) const {
  if (form_ == LogForm::sentences) {
    if (!sentence.empty()) spdlog::log(level, "{}", sentence);
    return;
  }
  if (form_ == LogForm::json) {
    JsonLine line{std::string(event)};
    for (const auto& [name, value] : fields) std::visit([&line, key = name](const auto& known) { line.add(key, known); }, value);
    return events_->log(level, "{}", line.text().substr(1));
  }
  std::string line(event);
  for (const auto& [name, value] : fields) line += " " + std::string(name) + "=" + text_of(value);
  events_->log(level, "{}", line);
}

void append_columns(EventLog::Fields& fields, const RoundRow& row) { append(fields, kRoundColumns, row); }
void append_columns(EventLog::Fields& fields, const RunRecord& record) { append(fields, kRunColumns, record); }

}  // namespace fl
