#include "apps/fedbits/terminal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "scenarios/results/broken_contracts.hpp"

namespace fl {
namespace {

// Progress on a clock that the test moves.
struct Shown {
  explicit Shown(ProgressStyle style, std::size_t width = 80) : progress(out, style, width, [this] { return now_s; }) {}
  // `rounds` rounds of `each_s` seconds.
  void run(std::uint64_t rounds, double each_s) {
    for (std::uint64_t r = 1; r <= rounds; ++r) {
      now_s += each_s;
      progress.update(r, "f_gap 1e-05");
    }
  }
  [[nodiscard]] auto count(char c) const {
    const std::string text = out.str();
    return std::count(text.begin(), text.end(), c);
  }

  double now_s = 100;
  std::ostringstream out;
  Progress progress;
};

TEST(Progress, PlainLinesAtTenths) {
  Shown shown(ProgressStyle::plain);
  shown.progress.begin("top-1% seed 1", 100);
  shown.run(100, 0.25);
  shown.progress.finish();
  EXPECT_EQ(shown.count('\n'), 10);
  EXPECT_EQ(shown.out.str().substr(0, shown.out.str().find('\n')), "top-1% seed 1  10%  10/100  4 rounds/s  22.5 s left  f_gap 1e-05");
  EXPECT_NE(shown.out.str().find(" 100%  100/100  4 rounds/s  0.0 s left"), std::string::npos);
  EXPECT_EQ(shown.count('\r') + shown.count('\x1b'), 0);
}

TEST(Progress, PlainLinesEveryFiveSecondsWhenRoundsAreSlow) {
  Shown shown(ProgressStyle::plain);
  shown.progress.begin("slow", 1000);
  shown.run(30, 1);
  EXPECT_EQ(shown.count('\n'), 6);
}

TEST(Progress, AShortRunPrintsNothingPlain) {
  Shown shown(ProgressStyle::plain);
  shown.progress.begin("short", 1000);
  shown.run(1000, 0.0009);
  shown.progress.finish();
  EXPECT_EQ(shown.out.str(), "");
}

TEST(Progress, ABarIsRedrawnTenTimesASecondAndDisappears) {
  Shown shown(ProgressStyle::bar);
  shown.progress.begin("cell", 10000);
  shown.run(10000, 0.001953125);  // 1/512 s: 19.5 s, drawn every 52 rounds and at the first
  EXPECT_EQ(shown.count('\r'), 193);
  EXPECT_EQ(shown.count('\n'), 0);
  EXPECT_NE(shown.out.str().find("[==========>         ]  50%"), std::string::npos);
  shown.progress.finish();
  EXPECT_TRUE(shown.out.str().ends_with("\r\x1b[K"));
  const std::string before = shown.out.str();
  shown.progress.finish();
  EXPECT_EQ(shown.out.str(), before);
}

TEST(Progress, ABarFitsItsTerminal) {
  Shown shown(ProgressStyle::bar, 30);
  shown.progress.begin("a title of λ that\nis much too long for so narrow a place", 10);
  shown.run(10, 1);
  std::istringstream lines(shown.out.str());
  std::string line;
  std::getline(lines, line, '\r');
  while (std::getline(lines, line, '\r')) EXPECT_LE(line.size(), 29u + 3u + 1u);  // an escape of three bytes; λ has two
}

TEST(Progress, NotesStandOnLinesOfTheirOwn) {
  Shown shown(ProgressStyle::bar);
  shown.progress.begin("cell", 4);
  shown.run(1, 1);
  shown.progress.note("warning");
  EXPECT_NE(shown.out.str().find("\r\x1b[Kwarning\n\r\x1b[Kcell"), std::string::npos);
  Shown silent(ProgressStyle::silent);
  silent.progress.note("warning");
  EXPECT_EQ(silent.out.str(), "warning\n");
}

TEST(Progress, SilentSaysNothing) {
  Shown shown(ProgressStyle::silent);
  shown.progress.begin("cell", 100);
  shown.run(100, 10);
  shown.progress.finish();
  EXPECT_EQ(shown.out.str(), "");
}

TEST(Progress, AResumedRunCountsOnlyItsOwnRounds) {
  Shown shown(ProgressStyle::plain);
  shown.progress.begin("resumed", 100, 50);
  shown.now_s += 10;
  shown.progress.update(60);
  EXPECT_EQ(shown.out.str(), "resumed  60%  60/100  1 rounds/s  40.0 s left\n");
}

TEST(Progress, ARunOfNoRounds) {
  Shown shown(ProgressStyle::plain);
  shown.progress.begin("none", 0);
  shown.now_s += 6;
  shown.progress.update(0);
  EXPECT_EQ(shown.out.str(), "none   0%  0/1\n");
}

TEST(Table, ColumnsAlign) {
  const Table table{.columns = {{"λ", Align::left}, {"bits", Align::right}, {"x", Align::left}},
                    .rows = {{"0.1", "5"}, {}, {"very long", "123456", "y"}}};
  std::ostringstream out;
  print(table, out);
  EXPECT_EQ(out.str(),
            "λ            bits  x\n"
            "---------  ------  -\n"
            "0.1             5\n"
            "\n"
            "very long  123456  y\n");
}

TEST(ClosingLine, SaysHowARunEnded) {
  RunRecord record{.run = "ab12", .name = "x", .seed = 3, .status = RunStatus::done, .rounds = 20};
  record.bits_up = 123456;
  record.bits_down = 99;
  record.f_gap = 1.23e-5;
  record.checksum = "ffee";
  record.axes = {{"compressor.up", "top-1%"}};
  EXPECT_EQ(closing_line(record, Hashes::shown),
            "run ab12  compressor.up=top-1%  seed=3  done  rounds 20  f_gap 1.23e-05  bits_up 123456  bits_down 99  checksum ffee");
  EXPECT_EQ(closing_line(record, Hashes::hidden),
            "compressor.up=top-1%  seed=3  done  rounds 20  f_gap 1.23e-05  bits_up 123456  bits_down 99");
  record_broken({.claim = Claim::delta, .round = 3, .measured = 0.125, .stated = 0.75}, record.constants);
  record_broken({.claim = Claim::omega, .round = 12, .since = 5, .measured = 19.83, .stated = 9, .has_domain = true}, record.constants);
  EXPECT_EQ(closing_line(record, Hashes::hidden),
            "compressor.up=top-1%  seed=3  done  rounds 20  f_gap 1.23e-05  bits_up 123456  bits_down 99  contract broken: delta 0.125 in "
            "round 3, stated 0.75; omega 19.83 as the mean of rounds 5 to 12, stated 9 for inputs of a domain (the operator's contract "
            "names it)");
}

TEST(ClosingLine, CountsWhatWasSkippedRefusedOrDropped) {
  RunRecord record{.run = "ab12", .name = "x", .seed = 3, .status = RunStatus::done, .rounds = 20};
  record.checksum = "ffee";
  record.constants = {{"skipped_rounds", 3}, {"L", 2.5}, {"refused_updates", 1234567}, {"dropped_roles", 4}};
  EXPECT_EQ(closing_line(record, Hashes::shown),
            "run ab12  seed=3  done  rounds 20  skipped_rounds 3  refused_updates 1234567  dropped_roles 4  bits_up 0  bits_down 0  "
            "checksum ffee");
  RunRecord other = record, good = record;
  other.constants = {{"refused_updates", 3}};
  good.constants = {{"L", 2.5}};
  EXPECT_EQ(losses_note({record, good, other}), "in 2 of 3 runs:  skipped_rounds 3  refused_updates 1234570  dropped_roles 4\n");
  EXPECT_EQ(losses_note({good}), "");
}

}  // namespace
}  // namespace fl
