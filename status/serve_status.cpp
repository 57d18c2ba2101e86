#include "status/serve_status.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "net/wire/client_ranges.hpp"
#include "status/metrics_text.hpp"
#include "status/status_json.hpp"

namespace fl::net {

namespace {

using Type = MetricsText::Type;

std::uint64_t clients_of(const PeerFacts& peer) { return peer.clients.empty() ? 0 : num_clients(parse_client_ranges(peer.clients)); }

std::uint64_t hosted_by(const std::vector<PeerFacts>& peers) {
  std::uint64_t hosted = 0;
  for (const PeerFacts& peer : peers)
    if (peer.is_ready && !peer.has_left) hosted += clients_of(peer);
  return hosted;
}

Json json_of(const PeerFacts& peer) {
  return {{"id", peer.id},
          {"address", peer.address},
          {"clients", shortened(peer.clients)},
          {"num_clients", clients_of(peer)},
          {"state", peer.has_left   ? "left"
                    : peer.is_ready ? "ready"
                                    : "joining"},
          {"last_round", peer.last_round},
          {"refusals", peer.refusals},
          {"why", shortened(peer.why)}};
}

Json json_of(const RunRecord& record) {
  return {{"run", record.run},
          {"seed", record.seed},
          {"status", to_string(record.status)},
          {"rounds", record.rounds},
          {"bits_up", record.bits_up},
          {"bits_down", record.bits_down},
          {"train_loss", json_number(record.train_loss)},
          {"test_accuracy", json_number(record.test_accuracy)},
          {"message", shortened(record.message)}};
}

Json json_of(const RunCurve& curve) {
  Json json = {{"round", Json::array()},
               {"train_loss", Json::array()},
               {"test_accuracy", Json::array()},
               {"bits_up", Json::array()},
               {"bits_down", Json::array()}};
  for (const CurvePoint& point : curve.points()) {
    json["round"].push_back(point.round);
    json["train_loss"].push_back(json_number(point.train_loss));
    json["test_accuracy"].push_back(json_number(point.test_accuracy));
    json["bits_up"].push_back(point.bits_up);
    json["bits_down"].push_back(point.bits_down);
  }
  return json;
}

Json json_of(const WireCounts& counts) {
  return {{"bytes_in", counts.bytes_in},
          {"bytes_out", counts.bytes_out},
          {"payload_bytes_in", counts.payload_bytes_in},
          {"payload_bytes_out", counts.payload_bytes_out},
          {"frames_in", counts.frames_in},
          {"frames_out", counts.frames_out},
          {"late", counts.late}};
}

void write_wire(const WireCounts& counts, MetricsText& metrics) {
  const auto pair = [&metrics](std::string_view name, std::string_view help, std::uint64_t in, std::uint64_t out) {
    metrics.family(name, Type::counter, help);
    metrics.sample(in, {{"direction", "in"}});
    metrics.sample(out, {{"direction", "out"}});
  };
  pair("fedbits_socket_bytes_total", "Bytes on the sockets of peers.", counts.bytes_in, counts.bytes_out);
  pair("fedbits_socket_payload_bytes_total", "Bytes of payloads of frames, which are part of the bytes on sockets.",
       counts.payload_bytes_in, counts.payload_bytes_out);
  pair("fedbits_socket_frames_total", "Frames on the sockets of peers.", counts.frames_in, counts.frames_out);
  metrics.single("fedbits_late_answers_total", Type::counter, "Answers of peers that came after their round.", counts.late);
  metrics.family("fedbits_refused_frames_total", Type::counter, "Frames and messages of peers that were refused, by reason.");
  std::map<std::string, std::uint64_t> refused;
  for (const auto& [reason, times] : counts.refused) refused[MetricsText::plain(shortened(reason))] += times;
  for (const auto& [reason, times] : refused) metrics.sample(times, {{"reason", reason}});
}

}  // namespace

std::string shortened(const std::string& text) {
  if (text.size() <= ServeStatus::kMostText) return text;
  std::size_t end = ServeStatus::kMostText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a character of UTF-8
  return text.substr(0, end) + "...";
}

ServeStatus::ServeStatus(std::string scenario, std::uint64_t runs, std::uint64_t rounds, double now_s)
    : scenario_(std::move(scenario)), began_s_(now_s) {
  totals_.runs = runs;
  totals_.rounds = rounds;
}

void ServeStatus::begin(const RunShown& run, double now_s) { playing_ = {.run = run, .is_open = true, .row_s = now_s}; }

// The first round waits for peers, which says nothing of the time that rounds take.
void ServeStatus::add(const RoundRow& row, double now_s) {
  if (playing_.rows++ > 1) {
    ++totals_.rounds_timed;
    totals_.timed_s += now_s - playing_.row_s;
  }
  totals_.rounds_closed += row.round > 0 ? 1 : 0;
  playing_.row_s = now_s;
  playing_.round = row.round;
  playing_.cohort = row.clients;
  playing_.refused += row.refused;
  playing_.bits_up += row.bits_up;
  playing_.bits_down += row.bits_down;
  totals_.bits_up += row.bits_up;
  totals_.bits_down += row.bits_down;
  const bool has_loss = !std::isnan(row.train_loss), has_accuracy = !std::isnan(row.test_accuracy);
  if (has_loss) playing_.train_loss = row.train_loss;
  if (has_accuracy) playing_.test_accuracy = row.test_accuracy;
  if (has_loss || has_accuracy) playing_.curve.add({row.round, row.train_loss, row.test_accuracy, playing_.bits_up, playing_.bits_down});
}

void ServeStatus::end(const RunRecord& record, double) {
  ++totals_.ended;
  ++totals_.ended_as[to_string(record.status)];
  totals_.rounds_ended += playing_.is_open ? playing_.run.rounds : record.rounds;
  playing_.is_open = false;
  ended_.push_back(record);
  ended_.back().scenario.clear();
  if (ended_.size() > kMostRuns) ended_.erase(ended_.begin());
}

void ServeStatus::see(std::vector<PeerFacts> peers, WireCounts counts) {
  peers_ = std::move(peers);
  counts_ = std::move(counts);
}

void ServeStatus::close(const StatusEnd& end, double now_s) {
  end_ = end;
  ended_s_ = now_s;
}

const char* ServeStatus::phase() const {
  if (!end_.outcome.empty()) return "ended";
  return playing_.is_open && playing_.round > 0 ? "playing" : "waiting";
}

std::string ServeStatus::waiting() const {
  if (!playing_.is_open || std::string_view(phase()) != "waiting") return "";
  return std::to_string(hosted_by(peers_)) + " of " + std::to_string(playing_.run.clients) + " clients are hosted";
}

// Returns NaN if it is unknown.
double ServeStatus::seconds_left() const {
  if (!end_.outcome.empty()) return 0;
  if (totals_.rounds_timed == 0) return kNotMeasured;
  const std::uint64_t done = totals_.rounds_ended + (playing_.is_open ? playing_.round : 0);
  const double each = totals_.timed_s / static_cast<double>(totals_.rounds_timed);
  return each * static_cast<double>(totals_.rounds - std::min(done, totals_.rounds));
}

std::string ServeStatus::json(double now_s) const {
  Json json = {{"kind", "serve"},
               {"version", FL_VERSION},
               {"scenario", scenario_},
               {"phase", phase()},
               {"outcome", end_.outcome},
               {"message", shortened(end_.message)},
               {"seconds", (end_.outcome.empty() ? now_s : ended_s_) - began_s_},
               {"seconds_left", json_number(seconds_left())},
               {"runs", totals_.runs},
               {"runs_ended", totals_.ended},
               {"bits_up", totals_.bits_up},
               {"bits_down", totals_.bits_down}};
  const RunShown& run = playing_.run;
  json["run"] = {{"run", run.run},
                 {"title", run.title},
                 {"seed", run.seed},
                 {"rounds", run.rounds},
                 {"clients", run.clients},
                 {"round", playing_.round},
                 {"cohort", playing_.cohort},
                 {"refused", playing_.refused},
                 {"bits_up", playing_.bits_up},
                 {"bits_down", playing_.bits_down},
                 {"train_loss", json_number(playing_.train_loss)},
                 {"test_accuracy", json_number(playing_.test_accuracy)}};
  json["curve"] = json_of(playing_.curve);
  json["clients_hosted"] = hosted_by(peers_);
  json["peers"] = Json::array();
  for (const PeerFacts& peer : peers_)
    if (json["peers"].size() < kMostPeers) json["peers"].push_back(json_of(peer));
  json["num_peers"] = peers_.size();
  json["sockets"] = json_of(counts_);
  json["refused"] = Json::array();
  for (const auto& [reason, times] : counts_.refused) json["refused"].push_back({{"reason", shortened(reason)}, {"times", times}});
  json["ended"] = Json::array();
  for (const RunRecord& record : ended_) json["ended"].push_back(json_of(record));
  return json_text(json);
}

std::string ServeStatus::metrics(double now_s) const {
  MetricsText metrics;
  metrics.family("fedbits_info", Type::gauge, "Always 1; the labels name the program's version, the command and the scenario.");
  metrics.sample(std::uint64_t{1}, {{"version", FL_VERSION}, {"command", "serve"}, {"scenario", scenario_}});
  metrics.single("fedbits_uptime_seconds", Type::gauge, "Time since the server began.",
                 (end_.outcome.empty() ? now_s : ended_s_) - began_s_);
  metrics.single("fedbits_seconds_left", Type::gauge, "Estimated time until the last run ends; NaN while it is unknown.", seconds_left());
  metrics.family("fedbits_phase", Type::gauge, "1 for the phase of the server, 0 for the others.");
  for (const std::string_view name : {"waiting", "playing", "ended"}) metrics.sample(std::uint64_t{name == phase()}, {{"phase", name}});
  metrics.single("fedbits_runs", Type::gauge, "Runs of the scenario.", totals_.runs);
  metrics.family("fedbits_runs_ended_total", Type::counter, "Runs that have ended, by status; stored ones included.");
  for (const RunStatus status : {RunStatus::done, RunStatus::diverged, RunStatus::interrupted, RunStatus::failed}) {
    const auto found = totals_.ended_as.find(to_string(status));
    metrics.sample(found == totals_.ended_as.end() ? std::uint64_t{0} : found->second, {{"status", to_string(status)}});
  }
  metrics.single("fedbits_run_round", Type::gauge, "Last round that has closed in the run that is played.", playing_.round);
  metrics.single("fedbits_run_rounds", Type::gauge, "Rounds of the run that is played.", playing_.run.rounds);
  metrics.single("fedbits_rounds_total", Type::counter, "Rounds that have closed, in all runs of this process.", totals_.rounds_closed);
  metrics.single("fedbits_run_clients", Type::gauge, "Clients of the run that is played.", playing_.run.clients);
  metrics.single("fedbits_clients_hosted", Type::gauge, "Clients that peers host which are ready.", hosted_by(peers_));
  metrics.family("fedbits_peers", Type::gauge, "Peers that are connected, by state.");
  for (const bool is_ready : {false, true}) {
    const auto count = std::ranges::count_if(peers_, [&](const PeerFacts& peer) { return !peer.has_left && peer.is_ready == is_ready; });
    metrics.sample(static_cast<std::uint64_t>(count), {{"state", is_ready ? "ready" : "joining"}});
  }
  metrics.family("fedbits_bits_total", Type::counter, "Bits that the ledger counts, in all runs of this process.");
  metrics.sample(totals_.bits_up, {{"direction", "up"}});
  metrics.sample(totals_.bits_down, {{"direction", "down"}});
  metrics.single("fedbits_train_loss", Type::gauge, "Training loss that was measured last; NaN before.", playing_.train_loss);
  metrics.single("fedbits_test_accuracy", Type::gauge, "Test accuracy that was measured last, a share; NaN before.",
                 playing_.test_accuracy);
  write_wire(counts_, metrics);
  return metrics.text();
}

}  // namespace fl::net
