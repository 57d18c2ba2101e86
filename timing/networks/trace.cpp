// Rates over time from a file: CSV with a first line "time_s[,client],down,up[,latency]" and a line for each change.
//
// A line holds from its time until the client's next line, the last one for ever, or until the trace begins again. A client without lines
// of its own has those of client "*".
#include <cmath>
#include <optional>
#include <utility>

#include "fl_core/config/key_error.hpp"
#include "timing/link_fields.hpp"
#include "timing/number_table.hpp"
#include "timing/piece_times.hpp"

namespace fl {
namespace {

struct TraceNetworkOptions {
  std::string path;
  bool repeat = false;
  double period = 0;
  LinkOptions link;
};
void describe(Schema& schema, TraceNetworkOptions& options) {
  schema
      .field("path", options.path,
             "CSV with the columns time_s, client (or * for all others), down, up [bit/s] and latency [s]; looked for like data.path")
      .required();
  schema.field("repeat", options.repeat, "the trace begins again after each `period`");
  quantity_field(schema, "period", options.period, time_units(), "time after which the trace begins again, for repeat = true")
      .above(0)
      .at_most(1e12)
      .unit("s");
  describe_delays(schema, options.link);
}
void validate(const TraceNetworkOptions& options, Problems& problems) {
  if (options.repeat && options.period <= 0) problems.push_back({"period", "is missing; repeat = true needs it"});
  if (!options.repeat && options.period > 0) problems.push_back({"period", "has no effect without repeat = true"});
}

// Columns of the file besides `client`.
constexpr std::size_t kTimeColumn = 0, kDownColumn = 1, kUpColumn = 2, kLatencyColumn = 3;

class TraceNetwork final : public Network {
 public:
  explicit TraceNetwork(TraceNetworkOptions options) : options_(std::move(options)) {}

  void open(const ClientFacts& clients) override {
    const NumberTable table(options_.path, {{"time_s"}, {"down"}, {"up"}, {"latency", false}}, clients, true);
    for (const NumberTable::Row& row : table.rows()) {
      table.require_positive(row, kDownColumn);
      table.require_positive(row, kUpColumn);
      if (row.cells[kLatencyColumn] < 0)
        table.refuse(row.line, "latency must be at least 0, is " + to_string(Value{row.cells[kLatencyColumn]}));
    }
    traces_.clear();
    for (const auto& rows : table.rows_by_client()) traces_.push_back(trace_of(table, rows));
  }
  [[nodiscard]] LinkRates link(std::uint32_t client, double now_s) const override {
    const Trace& trace = traces_[client];
    return trace.links[trace.times.piece(now_s)];
  }
  [[nodiscard]] double next_change(std::uint32_t client, double now_s) const override {
    return traces_[client].times.size() == 1 ? std::numeric_limits<double>::infinity() : traces_[client].times.next(now_s);
  }

 private:
  struct Trace {
    PieceTimes times;
    std::vector<LinkRates> links;  // one for each piece
  };

  [[nodiscard]] LinkRates link_of(const NumberTable::Row& row) const {
    LinkRates link = options_.link.link();
    link.down = row.cells[kDownColumn];
    link.up = row.cells[kUpColumn];
    if (!std::isnan(row.cells[kLatencyColumn])) link.latency_s = row.cells[kLatencyColumn];
    return link;
  }

  [[nodiscard]] Trace trace_of(const NumberTable& table, const std::vector<const NumberTable::Row*>& rows) const {
    const double period = options_.repeat ? options_.period : std::numeric_limits<double>::infinity();
    Trace trace;
    std::vector<double> begins;
    for (const NumberTable::Row* row : rows) {
      const double time = row->cells[kTimeColumn];
      if (begins.empty() && time != 0)
        table.refuse(row->line,
                     "the first line of a client must be at time 0, is at " + to_string(Value{time}) + ": there is a gap before it");
      if (!begins.empty() && time <= begins.back())
        table.refuse(row->line,
                     "times of a client must ascend: " + to_string(Value{time}) + " does not follow " + to_string(Value{begins.back()}));
      if (time >= period) table.refuse(row->line, "time_s must be below network.period = " + to_string(Value{period}));
      begins.push_back(time);
      trace.links.push_back(link_of(*row));
    }
    trace.times = PieceTimes(std::move(begins), period);
    return trace;
  }

  TraceNetworkOptions options_;
  std::vector<Trace> traces_;  // [N]
};

FL_REGISTER_NETWORK(TraceNetwork, TraceNetworkOptions, "trace", "rates over time from a file", "");

}  // namespace
}  // namespace fl
