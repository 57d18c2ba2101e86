// Participation is read from a file: CSV, lines "round,client" in any order, rounds from 1, clients from 0; a first line that
// begins with a letter is a header and is skipped.
//
// A round that the file does not name has no client and is skipped. Weights are normalised: w_i over their sum in the cohort; a trace has
// no probabilities, so nothing can be said about bias.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include "fl_core/config/key_error.hpp"
#include "fl_core/config/text_lines.hpp"
#include "server/participation.hpp"

namespace fl {
namespace {

struct TraceOptions {
  std::string path;
};
void describe(Schema& s, TraceOptions& o) {
  s.field("path", o.path, "CSV: a line per round and client that takes part in it; looked for like data.path").required();
}

struct TraceLine {
  std::uint32_t round = 0, client = 0;
  std::size_t number = 0;  // of the line
};

// Words, and not a line of numbers in which something is wrong.
bool is_header(std::string_view line) { return !line.empty() && std::isalpha(static_cast<unsigned char>(line.front())) != 0; }

std::optional<TraceLine> parse(std::string_view line) {
  TraceLine parsed;
  const char* end = line.data() + line.size();
  const auto [comma, no_round] = std::from_chars(line.data(), end, parsed.round);
  if (no_round != std::errc{} || comma == end || *comma != ',') return std::nullopt;
  const auto [stop, no_client] = std::from_chars(comma + 1, end, parsed.client);
  if (no_client != std::errc{} || stop != end) return std::nullopt;
  return parsed;
}

class TraceParticipation final : public Participation {
 public:
  explicit TraceParticipation(TraceOptions o) : options_(std::move(o)) {}

  void open(std::size_t num_clients, const FindFile& find) override {
    const std::string path = find(options_.path), text = read_text_file("participation.path", path);
    const auto place = [&path](std::size_t number) { return path + ":" + std::to_string(number) + ": "; };
    std::vector<TraceLine> found;
    for (TextLines lines(text); lines.next();) {
      const auto parsed = parse(lines.line());
      if (!parsed && lines.number() == 1 && is_header(lines.line())) continue;
      if (!parsed)
        throw key_error("participation.path", place(lines.number()) + "expected \"round,client\", is " + shown_line(lines.line()));
      if (parsed->round == 0) throw key_error("participation.path", place(lines.number()) + "rounds are counted from 1");
      if (parsed->client >= num_clients)
        throw key_error("participation.path", place(lines.number()) + "client " + std::to_string(parsed->client) +
                                                  ", but clients are 0 to " + std::to_string(num_clients - 1));
      found.push_back({parsed->round, parsed->client, lines.number()});
    }
    std::ranges::sort(found, {}, [](const TraceLine& line) { return std::tuple(line.round, line.client, line.number); });
    const auto twice = std::ranges::adjacent_find(found, {}, [](const TraceLine& line) { return std::pair(line.round, line.client); });
    if (twice != found.end())
      throw key_error("participation.path", place(std::next(twice)->number) + "client " + std::to_string(twice->client) + " is in round " +
                                                std::to_string(twice->round) + " already");
    for (const TraceLine& line : found) cohorts_[line.round].push_back(line.client);
    if (cohorts_.empty()) throw key_error("participation.path", "'" + options_.path + "' names no round");
  }

  [[nodiscard]] std::size_t cohort_size(std::size_t) const override {
    std::size_t most = 0;
    for (const auto& [_, cohort] : cohorts_) most = std::max(most, cohort.size());
    return most;
  }
  void sample(std::uint32_t round, std::uint64_t, std::span<const double> weights, RoundPlan& plan) const override {
    const auto at = cohorts_.find(round);
    plan.cohort = at == cohorts_.end() ? std::vector<std::uint32_t>{} : at->second;
    weigh(weights, CohortEstimate::normalised, 1, plan);
  }

 private:
  TraceOptions options_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> cohorts_;  // by round, ascending ids
};

FL_REGISTER_PARTICIPATION(TraceParticipation, TraceOptions, "trace", "rounds and clients from a file", "");

}  // namespace
}  // namespace fl
