// Tests of `fedbits run` with several small cells at a time: order, failures and stops of the cells, and the command's output.
#include "study/driver/cells_ahead.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "fl_core/config/stopping.hpp"
#include "scenarios/results/run_store.hpp"
#include "tests/support/study.hpp"

namespace fl {
namespace {

using test::Outcome;
using testing::ElementsAre;

// Returns a measured row of a round.
RoundRow row_of(std::uint64_t round) {
  RoundRow row;
  row.round = round;
  row.train_loss = static_cast<double>(round);
  return row;
}

// Plays rounds 0 .. 3; even cells take longer than odd ones.
CellsAhead::Played play_four(std::size_t cell, const RoundCallback& callback) {
  CellsAhead::Played played;
  for (std::uint64_t round = 0; round < 4; ++round) {
    if (cell % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (!callback(row_of(round))) {
      played.result.record.status = RunStatus::interrupted;
      break;
    }
    played.result.record.rounds = round;
  }
  played.result.record.seed = cell;
  return played;
}

TEST(CellsAhead, ComeInTheirOrderWithAllRounds) {
  std::vector<std::size_t> cells;
  for (std::size_t i = 0; i < 30; ++i) cells.push_back(2 * i / 3 + i);
  CellsAhead ahead(cells, 3, [](std::size_t cell, int, const RoundCallback& callback) { return play_four(cell, callback); });
  for (const std::size_t cell : cells) {
    ASSERT_TRUE(ahead.has(cell));
    std::vector<std::uint64_t> rounds;
    const CellsAhead::Played played = ahead.take(cell, [&rounds](const RoundRow& row) {
      rounds.push_back(row.round);
      return true;
    });
    EXPECT_EQ(played.result.record.seed, cell);
    EXPECT_THAT(rounds, ElementsAre(0, 1, 2, 3));
  }
  EXPECT_FALSE(ahead.has(1000));
}

TEST(CellsAhead, AFailureComesInTheTurnOfItsCell) {
  CellsAhead ahead({0, 1, 2, 3}, 2, [](std::size_t cell, int, const RoundCallback& callback) {
    if (cell == 1) throw std::runtime_error("cell 1");
    return play_four(cell, callback);
  });
  const auto go_on = [](const RoundRow&) { return true; };
  EXPECT_EQ(ahead.take(0, go_on).result.record.rounds, 3u);
  EXPECT_THROW((void)ahead.take(1, go_on), std::runtime_error);
  EXPECT_EQ(ahead.take(2, go_on).result.record.rounds, 3u);
}

TEST(CellsAhead, AStopInterruptsTheCellsThatHaveBegunAndNoOthersBegin) {
  std::vector<std::size_t> cells(100);
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = i;
  CellsAhead ahead(cells, 2, [](std::size_t cell, int, const RoundCallback& callback) {
    CellsAhead::Played played;
    for (std::uint64_t round = 0; callback(row_of(round)); ++round) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    played.result.record.status = RunStatus::interrupted;
    played.result.record.seed = cell;
    return played;
  });
  const auto until_both_have_begun = [&ahead](const RoundRow&) { return !ahead.has_begun(1); };
  EXPECT_EQ(ahead.take(0, until_both_have_begun).result.record.status, RunStatus::interrupted);
  ASSERT_TRUE(ahead.has_begun(1)) << "two at a time";
  EXPECT_EQ(ahead.take(1, [](const RoundRow&) { return false; }).result.record.status, RunStatus::interrupted);
  EXPECT_FALSE(ahead.has_begun(99));
}

TEST(CellsAhead, KeepMeasuredRoundsAndTheLatestOne) {
  RoundRow quiet;
  CellsAhead ahead({0}, 1, [&quiet](std::size_t, int, const RoundCallback& callback) {
    for (std::uint64_t round = 0; round < 100'000; ++round) {
      quiet.round = round;
      callback(round == 50'000 ? row_of(round) : quiet);
    }
    return CellsAhead::Played{};
  });
  bool is_there = false;
  std::uint64_t latest = 0;
  (void)ahead.take(0, [&](const RoundRow& row) {
    is_there |= row.train_loss == 50'000;
    EXPECT_GE(row.round, latest);
    latest = row.round;
    return true;
  });
  EXPECT_TRUE(is_there);
  EXPECT_EQ(latest, 99'999u);
}

TEST(CellsAhead, ShareThreadsOfSmallCells) {
  constexpr std::uint64_t kFew = 1 << 20, kMany = std::uint64_t{1} << 30;
  const auto share = [](int threads, std::size_t pending, std::uint64_t bytes) {
    const CellShare one = share_of_cells(threads, pending, bytes);
    return std::pair(one.cells, one.threads);
  };
  EXPECT_EQ(share(4, 60, kFew), std::pair(4, 1));
  EXPECT_EQ(share(4, 2, kFew), std::pair(2, 2));
  EXPECT_EQ(share(4, 1, kFew), std::pair(1, 4));
  EXPECT_EQ(share(1, 60, kFew), std::pair(1, 1));
  EXPECT_EQ(share(4, 60, kMany), std::pair(1, 4)) << "large cells run one after another";
}

class RunAtOnce : public test::StudyTest {};

TEST_F(RunAtOnce, PrintsAndStoresWhatOneThreadDoes) {
  write_study(4, 40);
  const auto run = [this](const std::string& out, const std::string& threads) {
    const Outcome outcome = fedbits({"run", "study.toml", "--out", out, "--threads", threads, "--log-json", out + ".json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::string text = outcome.out;
    for (std::size_t at; (at = text.find(out)) != std::string::npos;) text.replace(at, out.size(), "OUT");
    return text;
  };
  EXPECT_EQ(run("first", "1"), run("second", "3"));
  EXPECT_EQ(exported("first"), exported("second"));
  const RunStore store = RunStore::open(folder_ / "second", RunStore::Mode::read);
  for (const RunRecord& record : store.list()) EXPECT_EQ(record.threads, 1u) << "three cells at a time, a thread each";
  // The log has the same events in the same order.
  const auto events = [this](const std::string& file) {
    std::istringstream lines(read(file));
    std::vector<std::string> heads;
    for (std::string line; std::getline(lines, line);) heads.push_back(line.substr(0, 60));
    return heads;
  };
  EXPECT_EQ(events("first.json"), events("second.json"));
}

// The work before a first round asks the study that the cells belong to, although other threads do it.
TEST(CellsAhead, CellsArePreparedInTheScopeOfTheirStudy) {
  StopRequest stop;
  stop.ask();
  const StopScope scope(stop.token());
  CellsAhead ahead({0, 1}, 2, [](std::size_t, int, const RoundCallback&) -> CellsAhead::Played {
    const Preparation preparation("the run is prepared");
    check_for_stop();
    return {};
  });
  EXPECT_THROW((void)ahead.take(0, [](const RoundRow&) { return true; }), Stopped);
}

}  // namespace
}  // namespace fl
