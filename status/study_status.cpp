#include "status/study_status.hpp"

#include <algorithm>
#include <cmath>

#include "status/metrics_text.hpp"
#include "status/status_json.hpp"

namespace fl::net {

namespace {

using Type = MetricsText::Type;

constexpr std::array<const char*, kCellStates> kStateNames = {"pending", "running", "done", "diverged", "failed", "interrupted"};
constexpr std::string_view kStateLetters = "prdvfi";

double number_in(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "inf" || json == "-inf") return json == "inf" ? HUGE_VAL : -HUGE_VAL;
  return kNotMeasured;
}

CellState state_of(RunStatus status) {
  switch (status) {
    case RunStatus::done: return CellState::done;
    case RunStatus::diverged: return CellState::diverged;
    case RunStatus::interrupted: return CellState::interrupted;
    case RunStatus::failed: return CellState::failed;
  }
  return CellState::failed;
}

char letter(CellState state) { return kStateLetters[static_cast<std::size_t>(state)]; }

CellState state_of(char c) {
  const std::size_t at = kStateLetters.find(c);
  return at == std::string_view::npos ? CellState::pending : static_cast<CellState>(at);
}

std::string letters_of(const std::vector<CellState>& states) {
  std::string letters;
  for (const CellState state : states) letters += letter(state);
  return letters;
}

template <class T>
void keep_last(std::vector<T>& list, T one, std::size_t most) {
  list.push_back(std::move(one));
  if (list.size() > most) list.erase(list.begin());
}

}  // namespace

const char* to_string(CellState state) { return kStateNames[static_cast<std::size_t>(state)]; }

namespace study_event {

std::string stage(const std::string& text) { return json_text({{"event", "stage"}, {"text", text}}); }

std::string begun(const StudyShown& study) {
  return json_text({{"event", "begun"},
                    {"command", study.command},
                    {"name", study.name},
                    {"folder", study.folder},
                    {"workers", study.workers},
                    {"titles", study.titles},
                    {"states", letters_of(study.states)},
                    {"rounds", study.rounds},
                    {"purpose", study.purpose}});
}

std::string began(std::size_t cell, std::uint64_t worker) { return json_text({{"event", "began"}, {"cell", cell}, {"worker", worker}}); }

std::string reached(std::size_t cell, std::uint64_t round, double train_loss, double test_accuracy) {
  return json_text({{"event", "reached"},
                    {"cell", cell},
                    {"round", round},
                    {"train_loss", json_number(train_loss)},
                    {"test_accuracy", json_number(test_accuracy)}});
}

std::string ended(std::size_t cell, const RunRecord& record) {
  return json_text({{"event", "ended"},
                    {"cell", cell},
                    {"state", std::string(1, letter(state_of(record.status)))},
                    {"rounds", record.rounds},
                    {"train_loss", json_number(record.train_loss)},
                    {"test_accuracy", json_number(record.test_accuracy)},
                    {"seconds", json_number(record.seconds)},
                    {"bits_up", record.bits_up},
                    {"bits_down", record.bits_down},
                    {"message", shortened(record.message)}});
}

std::string closed(const StatusEnd& end) {
  return json_text({{"event", "closed"}, {"outcome", end.outcome}, {"message", shortened(end.message)}});
}

}  // namespace study_event

void StudyStatus::apply(const std::string& line, double now_s) {
  try {
    const Json json = Json::parse(line);
    const std::string event = json.at("event");
    if (event == "stage") stage_ = json.at("text");
    if (event == "begun") return take_begun(line, now_s);
    if (event == "closed" && end_.outcome.empty()) {
      end_ = {.outcome = json.at("outcome"), .message = json.at("message")};
      ended_s_ = now_s;
    }
    if (!json.contains("cell")) return;
    const std::size_t cell = json.at("cell");
    if (cell >= study_.states.size()) return;
    if (event == "began") {
      StudyWorker& worker = workers_.at(json.at("worker"));
      worker = {};
      worker.is_busy = true;
      worker.cell = cell;
      study_.states[cell] = CellState::running;
    }
    if (event == "reached")
      for (StudyWorker& worker : workers_)
        if (worker.is_busy && worker.cell == cell) {
          worker.round = json.at("round");
          worker.train_loss = number_in(json.at("train_loss"));
          worker.test_accuracy = number_in(json.at("test_accuracy"));
        }
    if (event == "ended")
      take_ended({.cell = cell,
                  .state = state_of(json.at("state").get<std::string>().at(0)),
                  .rounds = json.at("rounds"),
                  .train_loss = number_in(json.at("train_loss")),
                  .test_accuracy = number_in(json.at("test_accuracy")),
                  .seconds = number_in(json.at("seconds")),
                  .message = json.at("message")},
                 json.at("bits_up"), json.at("bits_down"));
  } catch (const std::exception&) {  // no event
  }
}

void StudyStatus::take_begun(const std::string& line, double now_s) {
  const Json json = Json::parse(line);
  StudyShown study{.command = json.at("command"),
                   .name = json.at("name"),
                   .folder = json.at("folder"),
                   .workers = json.at("workers"),
                   .titles = json.at("titles"),
                   .states = {},
                   .rounds = json.at("rounds"),
                   .purpose = json.at("purpose")};
  for (const char c : json.at("states").get<std::string>()) study.states.push_back(state_of(c));
  if (study.titles.size() != study.states.size() || study.rounds.size() != study.states.size()) return;
  study_ = std::move(study);
  workers_.assign(std::clamp<std::uint64_t>(study_.workers, 1, 4096), {});
  num_to_run_ = static_cast<std::uint64_t>(std::ranges::count(study_.states, CellState::pending));
  totals_ = {.began_s = now_s};
  ended_.clear();  // of the batch before, whose titles are gone
  problems_.clear();
  stage_ = study_.purpose.empty() ? "running" : "tuning";
  ++num_begun_;
}

void StudyStatus::take_ended(const EndedRun& ended, std::uint64_t bits_up, std::uint64_t bits_down) {
  study_.states[ended.cell] = ended.state;
  for (StudyWorker& worker : workers_)
    if (worker.is_busy && worker.cell == ended.cell) worker.is_busy = false;
  ++totals_.ended;
  totals_.rounds += ended.rounds;
  totals_.bits_up += bits_up;
  totals_.bits_down += bits_down;
  keep_last(ended_, ended, kMostEnded);
  if (ended.state != CellState::done) keep_last(problems_, ended, kMostProblems);
}

void StudyStatus::lose(double now_s) {
  if (!end_.outcome.empty()) return;
  end_ = {.outcome = "failed", .message = "the process of the study has ended without a word"};
  ended_s_ = now_s;
}

std::array<std::uint64_t, kCellStates> StudyStatus::count() const {
  std::array<std::uint64_t, kCellStates> counts{};
  for (const CellState state : study_.states) ++counts[static_cast<std::size_t>(state)];
  return counts;
}

// Returns the runs that workers have done, as shares of their rounds.
double StudyStatus::rounds_of_workers() const {
  double done = 0;
  for (const StudyWorker& worker : workers_)
    if (worker.is_busy && study_.rounds[worker.cell] > 0)
      done += std::min(1.0, static_cast<double>(worker.round) / static_cast<double>(study_.rounds[worker.cell]));
  return done;
}

double StudyStatus::seconds_left(double now_s) const {
  if (!end_.outcome.empty()) return 0;
  const double done = static_cast<double>(totals_.ended) + rounds_of_workers(), all = static_cast<double>(num_to_run_);
  const double spent = now_s - totals_.began_s;
  if (done <= 0 || spent <= 0) return kNotMeasured;
  return std::max(0.0, all - done) * spent / done;
}

std::string StudyStatus::json(double now_s) const {
  const auto json_of = [this](const EndedRun& run) {
    return Json{{"cell", run.cell},
                {"title", study_.titles[run.cell]},
                {"status", to_string(run.state)},
                {"rounds", run.rounds},
                {"train_loss", json_number(run.train_loss)},
                {"test_accuracy", json_number(run.test_accuracy)},
                {"seconds", json_number(run.seconds)},
                {"message", run.message}};
  };
  Json json = {{"kind", "sweep"},
               {"version", FL_VERSION},
               {"command", study_.command},
               {"scenario", study_.name},
               {"folder", study_.folder},
               {"phase", end_.outcome.empty() ? stage_ : "ended"},
               {"purpose", study_.purpose},
               {"batch", num_begun_},
               {"outcome", end_.outcome},
               {"message", end_.message},
               {"seconds", (end_.outcome.empty() ? now_s : ended_s_) - began_s_},
               {"seconds_left", json_number(seconds_left(now_s))},
               {"rounds_ended", totals_.rounds},
               {"bits_up", totals_.bits_up},
               {"bits_down", totals_.bits_down},
               {"cells", study_.states.size()},
               {"states", letters_of(study_.states)}};
  const auto counts = count();
  for (std::size_t s = 0; s < kCellStates; ++s) json["counts"][kStateNames[s]] = counts[s];
  json["workers"] = Json::array();
  for (const StudyWorker& worker : workers_) {
    if (!worker.is_busy) {
      json["workers"].push_back(nullptr);
      continue;
    }
    json["workers"].push_back({{"cell", worker.cell},
                               {"title", study_.titles[worker.cell]},
                               {"round", worker.round},
                               {"rounds", study_.rounds[worker.cell]},
                               {"train_loss", json_number(worker.train_loss)},
                               {"test_accuracy", json_number(worker.test_accuracy)}});
  }
  json["ended"] = Json::array();
  for (const EndedRun& run : ended_) json["ended"].push_back(json_of(run));
  json["problems"] = Json::array();
  for (const EndedRun& run : problems_) json["problems"].push_back(json_of(run));
  return json_text(json);
}

std::string StudyStatus::titles_json() const { return json_text({{"titles", study_.titles}}); }

std::string StudyStatus::metrics(double now_s) const {
  MetricsText metrics;
  metrics.family("fedbits_info", Type::gauge, "Always 1; the labels name the program's version, the command and the scenario.");
  metrics.sample(std::uint64_t{1}, {{"version", FL_VERSION}, {"command", study_.command}, {"scenario", study_.name}});
  metrics.single("fedbits_uptime_seconds", Type::gauge, "Time since the study began.",
                 (end_.outcome.empty() ? now_s : ended_s_) - began_s_);
  metrics.single("fedbits_seconds_left", Type::gauge, "Estimated time until the last run ends; NaN while it is unknown.",
                 seconds_left(now_s));
  metrics.single("fedbits_ended", Type::gauge, "1 if the study has ended.", std::uint64_t{!end_.outcome.empty()});
  metrics.family("fedbits_cells", Type::gauge, "Runs of the study, by state; those that were stored before it began are included.");
  const auto counts = count();
  for (std::size_t s = 0; s < kCellStates; ++s) metrics.sample(counts[s], {{"state", kStateNames[s]}});
  const auto busy = static_cast<std::uint64_t>(std::ranges::count_if(workers_, [](const StudyWorker& worker) { return worker.is_busy; }));
  metrics.family("fedbits_workers", Type::gauge, "Runs that may be played at a time, by what is done with them.");
  metrics.sample(busy, {{"state", "busy"}});
  metrics.sample(workers_.size() - busy, {{"state", "idle"}});
  metrics.single("fedbits_rounds_total", Type::counter, "Rounds of runs that have ended in this process.", totals_.rounds);
  metrics.family("fedbits_bits_total", Type::counter, "Bits that the ledger counts, in the runs that have ended in this process.");
  metrics.sample(totals_.bits_up, {{"direction", "up"}});
  metrics.sample(totals_.bits_down, {{"direction", "down"}});
  const auto of_workers = [&](std::string_view name, std::string_view help, const auto& value) {
    metrics.family(name, Type::gauge, help);
    for (std::size_t w = 0; w < workers_.size(); ++w)
      if (workers_[w].is_busy) metrics.sample(value(workers_[w]), {{"worker", std::to_string(w)}});
  };
  of_workers("fedbits_run_round", "Last round of the run that a worker plays.", [](const StudyWorker& worker) { return worker.round; });
  of_workers("fedbits_run_rounds", "Rounds of that run.", [this](const StudyWorker& worker) { return study_.rounds[worker.cell]; });
  of_workers("fedbits_train_loss", "Training loss of that run, measured last; NaN before.",
             [](const StudyWorker& w) { return w.train_loss; });
  of_workers("fedbits_test_accuracy", "Test accuracy of that run, a share; NaN before.",
             [](const StudyWorker& w) { return w.test_accuracy; });
  return metrics.text();
}

}  // namespace fl::net
