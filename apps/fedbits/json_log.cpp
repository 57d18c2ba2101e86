#include "apps/fedbits/json_log.hpp"

#include <cerrno>
#include <cstring>

#include "apps/fedbits/json_line.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/results/measured_row.hpp"
#include "scenarios/results/run_store.hpp"

namespace fl {

JsonLog::JsonLog(const std::string& file) : file_(file) {
  if (file_.empty()) return;
  errno = 0;
  out_.open(file_, std::ios::binary | std::ios::trunc);
  if (!out_) throw StoreError("cannot write " + file_ + ": " + std::strerror(errno) + "; --log-json takes a file in a writable folder");
}

void JsonLog::started(const Cell& cell) {
  if (file_.empty()) return;
  std::string axes;
  for (const auto& [key, label] : cell.axis_labels) axes += (axes.empty() ? "" : ",") + json_text(key) + ":" + json_text(label);
  JsonLine line("started");
  line.add("run", to_hex(cell.hash));
  line.add("name", cell.scenario.name);
  line.add("seed", cell.scenario.seeds.data);
  line.add("rounds", static_cast<std::uint64_t>(cell.scenario.rounds));
  line.add_json("axes", "{" + axes + "}");
  write(line.text());
}

void JsonLog::progress(const std::string& run, const RoundRow& row, const std::vector<MeasureColumn>& columns) {
  if (file_.empty() || !is_measured(row)) return;
  JsonLine line("progress");
  line.add("run", run);
  line.add_columns(kRoundColumns, row);
  for (std::size_t c = 0; c < columns.size() && c < row.more.size(); ++c) line.add(columns[c].name, row.more[c]);
  write(line.text());
}

void JsonLog::finished(const RunRecord& record, Origin origin) {
  if (file_.empty()) return;
  JsonLine line("finished");
  line.add_columns(kRunColumns, record);
  line.add("message", record.message);
  line.add("stored", origin == Origin::stored);
  write(line.text());
}

// Runs a command and logs its rejection. NotStoredError is not a rejection, because it ends a command that has already run something.
int JsonLog::watch(const std::function<int()>& command) {
  try {
    return command();
  } catch (const NotStoredError&) {
    throw;
  } catch (const ConfigError& error) {
    refused(error.problems());
    throw;
  } catch (const Error& error) {
    refused({{"", error.what()}});
    throw;
  }
}

void JsonLog::refused(const std::vector<Problem>& problems) {
  if (file_.empty()) return;
  for (const Problem& problem : problems) {
    JsonLine line("refused");
    line.add("where", problem.where);
    line.add("message", problem.message);
    write(line.text());
  }
}

void JsonLog::write(const std::string& line) {
  out_ << line << std::endl;
  if (!out_) throw StoreError("cannot write " + file_ + ": the disk may be full");
}

}  // namespace fl
