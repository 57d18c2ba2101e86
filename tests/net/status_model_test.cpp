// Tests what is shown of runs and studies: the metrics in the format of Prometheus, the JSON of the page, and the events of a study.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fl_core/config/error.hpp"
#include "status/metrics_text.hpp"
#include "status/run_curve.hpp"
#include "status/serve_status.hpp"
#include "status/study_status.hpp"
#include "tests/net/exposition.hpp"

namespace fl {
namespace {

using Json = nlohmann::json;
using net::MetricsText;

TEST(MetricsText, WritesFamiliesSamplesAndEscapes) {
  MetricsText metrics;
  metrics.single("a_total", MetricsText::Type::counter, "What\\is\ncounted.", std::uint64_t{3});
  metrics.family("b", MetricsText::Type::gauge, "A value.");
  metrics.sample(0.1, {{"reason", "say \"no\"\\\n\x01\xc3\xa9"}, {"other", ""}});
  metrics.sample(std::nan(""));
  metrics.sample(-HUGE_VAL, {{"x", "y"}});
  EXPECT_EQ(metrics.text(),
            "# HELP a_total What\\\\is\\ncounted.\n# TYPE a_total counter\na_total 3\n"
            "# HELP b A value.\n# TYPE b gauge\nb{reason=\"say \\\"no\\\"\\\\\\n???\",other=\"\"} 0.1\nb NaN\nb{x=\"y\"} -Inf\n");
  EXPECT_EQ(test::read_exposition(metrics.text()).size(), 4u);
  EXPECT_THROW(metrics.family("b", MetricsText::Type::gauge, "again"), Error);
  EXPECT_THROW(metrics.family("1b", MetricsText::Type::gauge, "no name"), Error);
  EXPECT_THROW(MetricsText().sample(1.0), Error);
}

TEST(RunCurve, HasABoundedNumberOfPointsAndTheLastOne) {
  net::RunCurve curve;
  for (std::uint64_t round = 0; round < 100000; ++round) {
    curve.add({.round = round, .train_loss = static_cast<double>(round)});
    ASSERT_LE(curve.points().size(), net::RunCurve::kMostPoints + 1);
    ASSERT_EQ(curve.points().back().round, round);
  }
  EXPECT_GT(curve.points().size(), net::RunCurve::kMostPoints / 2);
  EXPECT_EQ(curve.points().front().round, 0u);
  const std::uint64_t step = curve.points()[1].round;
  for (std::size_t i = 0; i + 1 < curve.points().size(); ++i) ASSERT_EQ(curve.points()[i].round, i * step);
}

RoundRow shown_row(std::uint64_t round, double loss) {
  RoundRow row;
  row.round = round;
  row.clients = 4;
  row.bits_up = round > 0 ? 100 : 0;
  row.bits_down = round > 0 ? 50 : 0;
  row.train_loss = loss;
  return row;
}

net::ServeStatus begun_status() {
  net::ServeStatus status("small", 2, 40, 100);
  status.begin({.run = "abc", .title = "small 1/2  <b>top</b>", .seed = 1, .rounds = 20, .clients = 7}, 100);
  return status;
}

TEST(ServeStatus, CountsRoundsAndEstimatesTheTimeWithoutTheWaitForPeers) {
  net::ServeStatus status = begun_status();
  EXPECT_STREQ(status.phase(), "waiting");
  EXPECT_TRUE(Json::parse(status.json(150))["seconds_left"].is_null());
  status.add(shown_row(0, 2), 102);
  EXPECT_STREQ(status.phase(), "waiting");
  for (std::uint64_t round = 1; round <= 10; ++round)
    status.add(shown_row(round, round % 2 == 0 ? 1.0 / static_cast<double>(round) : kNotMeasured),
               200.0 + 2.0 * static_cast<double>(round));
  EXPECT_STREQ(status.phase(), "playing");
  const Json json = Json::parse(status.json(220));
  EXPECT_EQ(json["run"]["round"], 10);
  EXPECT_EQ(json["run"]["title"], "small 1/2  <b>top</b>");
  EXPECT_EQ(json["bits_up"], 1000);
  EXPECT_EQ(json["bits_down"], 500);
  EXPECT_EQ(json["run"]["train_loss"], 0.1);
  EXPECT_TRUE(json["run"]["test_accuracy"].is_null());
  EXPECT_EQ(json["seconds"], 120.0);
  EXPECT_EQ(json["seconds_left"], 60.0);  // 30 rounds of 2 s
  EXPECT_EQ(json["curve"]["round"], Json({0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(json["curve"]["bits_up"], Json({0, 200, 400, 600, 800, 1000}));
}

TEST(ServeStatus, ShowsPeersRefusalsAndTheEnd) {
  net::ServeStatus status = begun_status();
  net::WireCounts counts;
  counts.bytes_in = 10;
  counts.bytes_out = 20;
  const std::string reason(500, 'x');
  counts.refused = {{reason + "a", 2}, {reason + "b", 3}, {"odd \"one\"\n", 1}};
  status.see({{.id = 1, .address = "127.0.0.1:5", .clients = "0-4", .is_ready = true, .last_round = 3},
              {.id = 2, .address = "127.0.0.1:6", .clients = "5"},
              {.id = 3, .clients = "6", .is_ready = true, .has_left = true, .why = "it closed\xff"}},
             counts);
  Json json = Json::parse(status.json(100));
  EXPECT_EQ(json["clients_hosted"], 5);
  EXPECT_EQ(json["peers"][0]["state"], "ready");
  EXPECT_EQ(json["peers"][0]["last_round"], 3);
  EXPECT_EQ(json["peers"][1]["state"], "joining");
  EXPECT_EQ(json["peers"][2]["state"], "left");
  const auto values = test::read_exposition(status.metrics(100));
  EXPECT_EQ(values.at("fedbits_peers{state=\"ready\"}"), 1);
  EXPECT_EQ(values.at("fedbits_peers{state=\"joining\"}"), 1);
  EXPECT_EQ(values.at("fedbits_clients_hosted"), 5);
  EXPECT_EQ(values.at("fedbits_socket_bytes_total{direction=\"in\"}"), 10);
  // Two reasons that are shown alike are one sample.
  EXPECT_EQ(values.at("fedbits_refused_frames_total{reason=\"" + std::string(net::ServeStatus::kMostText, 'x') + "...\"}"), 5);
  EXPECT_EQ(values.at("fedbits_refused_frames_total{reason=\"odd \\\"one\\\"\\n\"}"), 1);
  EXPECT_EQ(values.at("fedbits_phase{phase=\"waiting\"}"), 1);
  EXPECT_TRUE(std::isnan(values.at("fedbits_train_loss")));

  RunRecord record;
  record.run = "abc";
  record.status = RunStatus::diverged;
  record.message = "too large";
  status.end(record, 110);
  status.close({"failed", "some runs have no result"}, 111);
  json = Json::parse(status.json(200));
  EXPECT_EQ(json["phase"], "ended");
  EXPECT_EQ(json["outcome"], "failed");
  EXPECT_EQ(json["seconds"], 11.0);
  EXPECT_EQ(json["seconds_left"], 0.0);
  EXPECT_EQ(json["ended"][0]["status"], "diverged");
  EXPECT_EQ(test::read_exposition(status.metrics(200)).at("fedbits_runs_ended_total{status=\"diverged\"}"), 1);
}

TEST(ServeStatus, ManyPeersAreBounded) {
  net::ServeStatus status = begun_status();
  std::vector<net::PeerFacts> peers;
  for (std::uint64_t id = 1; id <= 5000; ++id) peers.push_back({.id = id, .clients = std::to_string(id), .is_ready = true});
  status.see(peers, {});
  const Json json = Json::parse(status.json(100));
  EXPECT_EQ(json["peers"].size(), net::ServeStatus::kMostPeers);
  EXPECT_EQ(json["num_peers"], 5000);
  EXPECT_EQ(json["clients_hosted"], 5000);
}

// The events of a study of four runs on two workers; the last run was stored before.
TEST(StudyStatus, FollowsItsEvents) {
  using net::CellState;
  namespace event = net::study_event;
  net::StudyStatus status(10);
  EXPECT_EQ(Json::parse(status.json(10))["phase"], "preparing");
  status.apply(event::stage("tuning"), 11);
  EXPECT_EQ(Json::parse(status.json(11))["phase"], "tuning");
  status.apply(event::begun({.command = "sweep",
                             .name = "small",
                             .folder = "out",
                             .workers = 2,
                             .titles = {"one", "two", "three", "four"},
                             .states = {CellState::pending, CellState::pending, CellState::pending, CellState::done},
                             .rounds = {10, 10, 10, 10}}),
               20);
  EXPECT_TRUE(std::isnan(status.seconds_left(21)));
  status.apply(event::began(0, 0), 20);
  status.apply(event::began(1, 1), 20);
  status.apply(event::reached(1, 5, 0.5, kNotMeasured), 30);
  EXPECT_EQ(status.state(1), CellState::running);
  EXPECT_DOUBLE_EQ(status.seconds_left(30), 50);  // half a run in 10 s, and two and a half are left
  RunRecord record;
  record.rounds = 10;
  record.bits_up = 7;
  record.train_loss = HUGE_VAL;
  record.status = RunStatus::diverged;
  record.message = "</script>\"\n";
  status.apply(event::ended(0, record), 40);
  const Json json = Json::parse(status.json(40));
  EXPECT_EQ(json["states"], "vrpd");
  EXPECT_EQ(json["counts"]["diverged"], 1);
  EXPECT_EQ(json["workers"][0], nullptr);
  EXPECT_EQ(json["workers"][1]["title"], "two");
  EXPECT_EQ(json["workers"][1]["train_loss"], 0.5);
  EXPECT_EQ(json["problems"][0]["message"], "</script>\"\n");
  EXPECT_EQ(json["problems"][0]["train_loss"], "inf");
  EXPECT_EQ(Json::parse(status.titles_json())["titles"].size(), 4u);
  const auto values = test::read_exposition(status.metrics(40));
  EXPECT_EQ(values.at("fedbits_cells{state=\"running\"}"), 1);
  EXPECT_EQ(values.at("fedbits_workers{state=\"idle\"}"), 1);
  EXPECT_EQ(values.at("fedbits_train_loss{worker=\"1\"}"), 0.5);
  EXPECT_EQ(values.at("fedbits_bits_total{direction=\"up\"}"), 7);
  EXPECT_EQ(values.at("fedbits_ended"), 0);
}

// Batches of tuning are followed like studies, one after another, and the study's own runs begin anew.
TEST(StudyStatus, FollowsTuning) {
  using net::CellState;
  namespace event = net::study_event;
  const auto batch = [](const std::string& purpose, std::size_t runs) {
    net::StudyShown shown{.command = "sweep", .name = "small", .folder = "out/tuning", .workers = 1, .purpose = purpose};
    shown.titles.assign(runs, "a run");
    shown.states.assign(runs, CellState::pending);
    shown.rounds.assign(runs, 10);
    return event::begun(shown);
  };
  net::StudyStatus status(0);
  status.apply(batch("matching bits, step 1", 3), 1);
  status.apply(event::began(2, 0), 2);
  RunRecord record;
  record.rounds = 10;
  record.status = RunStatus::diverged;
  status.apply(event::ended(2, record), 3);
  Json json = Json::parse(status.json(4));
  EXPECT_EQ(json["phase"], "tuning");
  EXPECT_EQ(json["purpose"], "matching bits, step 1");
  EXPECT_EQ(json["states"], "ppv");
  EXPECT_EQ(json["batch"], 1);
  status.apply(batch("comparing candidates", 2), 5);  // which has fewer runs than the one before
  json = Json::parse(status.json(6));
  EXPECT_EQ(json["purpose"], "comparing candidates");
  EXPECT_EQ(json["batch"], 2);
  EXPECT_TRUE(json["ended"].empty() && json["problems"].empty());
  status.apply(batch("", 1), 7);
  EXPECT_EQ(Json::parse(status.json(8))["phase"], "running");
}

TEST(StudyStatus, LinesThatAreNoEventsChangeNothing) {
  net::StudyStatus status(0);
  const std::string before = status.json(1);
  const char* const without_states =
      "{\"event\":\"begun\",\"command\":\"\",\"name\":\"\",\"folder\":\"\",\"workers\":1,\"titles\":[\"a\"],\"states\":\"\",\"rounds\":[],"
      "\"purpose\":\"\"}";
  for (const char* line :
       {"", "{", "null", "[]", "{\"event\":3}", "{\"event\":\"began\",\"cell\":9,\"worker\":0}", "{\"event\":\"ended\"}", without_states})
    status.apply(line, 1);
  EXPECT_EQ(status.json(1), before);
}

TEST(StudyStatus, AStudyThatIsLostHasFailed) {
  net::StudyStatus status(0);
  status.lose(5);
  EXPECT_EQ(Json::parse(status.json(9))["outcome"], "failed");
  net::StudyStatus closed(0);
  closed.apply(net::study_event::closed({"done", ""}), 3);
  closed.lose(5);
  EXPECT_EQ(Json::parse(closed.json(9))["outcome"], "done");
}

}  // namespace
}  // namespace fl
