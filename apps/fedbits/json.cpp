#include "apps/fedbits/json.hpp"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "apps/fedbits/numbers.hpp"
#include "fl_core/error.hpp"

namespace fl {

std::string json_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string json_number(double value) {
  if (std::isnan(value)) return "null";
  if (std::isinf(value)) return value > 0 ? "1e999" : "-1e999";
  return exact_text(value);
}

JsonLog::JsonLog(const std::string& file) : file_(file) {
  if (file_.empty()) return;
  errno = 0;
  out_.open(file_, std::ios::binary | std::ios::trunc);
  if (!out_) throw StoreError("cannot write " + file_ + ": " + std::strerror(errno) + "; --log-json takes a file in a writable folder");
}

void JsonLog::add(const std::string& run, const RoundRow& row) {
  const bool is_measured = !std::isnan(row.train_loss) || !std::isnan(row.compensated_norm_sq);
  if (file_.empty() || !is_measured) return;
  out_ << "{\"run\":" << json_text(run);
  for (const RoundColumn& column : kRoundColumns) {
    out_ << "," << json_text(std::string(column.name)) << ":";
    std::visit([&](auto member) { write(row.*member); }, column.member);
  }
  out_ << "}" << std::endl;
  if (!out_) throw StoreError("cannot write " + file_ + ": the disk may be full");
}

}  // namespace fl
