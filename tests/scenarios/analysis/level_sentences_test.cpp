// Tests the sentences that answer a study, and the notes about studies that are not complete.
#include "scenarios/analysis/level_sentences.hpp"

#include <gmock/gmock.h>

#include "scenarios/file/sweep.hpp"
#include "tests/scenarios/analysis/synthetic_study.hpp"

namespace fl {
namespace {

using test::MadeRun;
using test::MadeStore;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

std::vector<std::pair<std::uint64_t, double>> steadily(std::uint64_t bits, std::size_t rounds, double first, double step) {
  std::vector<std::pair<std::uint64_t, double>> curve;
  for (std::size_t r = 0; r <= rounds; ++r) curve.emplace_back(r == 0 ? 0 : bits, first - step * static_cast<double>(r));
  return curve;
}

// `top` needs half of the bits up in a round. `down_factor` says how much its clients receive at the level "1".
void add_runs(MadeStore& made, std::uint64_t down_factor) {
  for (const char* level : {"1", "100"})
    for (const std::uint64_t seed : {1, 2, 3}) {
      const double start = 2 + static_cast<double>(seed) / 10, own = 0.001 * static_cast<double>(seed * seed);
      made.add({"none", level, seed, RunStatus::done, steadily(20, 60, start, 0.01)});
      MadeRun top{"top", level, seed, RunStatus::done, steadily(10, 100, start + own, 0.008)};
      if (std::string(level) == "1") top.down_factor = down_factor;
      made.add(top);
    }
}

TEST(LevelSentences, SayWhoIsAheadByHowMuchAndHowSure) {
  MadeStore made;
  add_runs(made, 2);
  const Study study = read_study(made.store(), {.baseline = "none"});
  const std::vector<std::string> sentences = level_sentences(study, 0, Against::bits_up);
  ASSERT_EQ(sentences.size(), 2u);
  // By hand (EqualBits.EndPointsPerPairAndSeed): 2.2 - 0.445 = 1.755, and a difference of 0.0047 - 0.271.
  EXPECT_THAT(sentences[0], HasSubstr("partition.alpha = 1: top is ahead of none at 1 kbit up: "));
  EXPECT_THAT(sentences[0], MatchesRegex(".* 15.2% lower \\(95% interval 14.*% to 15.*%, p .*, 3 pairs\\)\\."));
  EXPECT_THAT(level_sentences(study, 0, Against::bits_both)[0], HasSubstr(" at 3 kbit up and down: "));
  EXPECT_EQ(both_ways_sentence(study, 0), "With the bits down counted as well, every verdict is the same.");
}

// With the bits down a round of `top` takes 50 bits and one of `none` 60: at 3600 bits `top` has played 72 rounds and is behind.
TEST(LevelSentences, SayWhereTheBitsDownTurnTheAnswer) {
  MadeStore made;
  add_runs(made, 4);
  const Study study = read_study(made.store(), {.baseline = "none"});
  EXPECT_THAT(level_sentences(study, 0, Against::bits_up)[0], HasSubstr("top is ahead of none"));
  EXPECT_THAT(level_sentences(study, 0, Against::bits_both)[0], HasSubstr("top is behind none"));
  // By hand: 2.2 - 0.535 = 1.665, and a difference of 0.0047 - 0.5143 + 0.535.
  EXPECT_EQ(both_ways_sentence(study, 0),
            "With the bits down counted as well, the answer changes: top is behind none at partition.alpha = 1 (f(x) − f* 1.52% higher).");
}

TEST(LevelSentences, NoClaimHasTheDifferenceAndTheReason) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    made.add({"none", "1", seed, RunStatus::done, steadily(10, 30, 1, 0)});
    made.add({"top", "1", seed, RunStatus::done, steadily(10 + seed, 30, seed == 2 ? 0.5 : 1.4, 0)});
  }
  const Study study = read_study(made.store(), {.baseline = "none"});
  EXPECT_THAT(level_sentences(study, 0, Against::bits_up),
              ElementsAre(MatchesRegex("partition.alpha = 1: no claim about top at 300 bit up: .* 10% higher \\(95% interval .*% lower to "
                                       ".*% higher, p = .*, 3 pairs\\), "
                                       "because the interval contains zero\\.")));
}

TEST(LevelSentences, BudgetsThatDifferAreAMean) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    made.add({"none", "1", seed, RunStatus::done, steadily(10 * seed, 30, 1 + 0.01 * static_cast<double>(seed), 0.001)});
    made.add({"top", "1", seed, RunStatus::done, steadily(10 * seed, 30, 0.5 + 0.02 * static_cast<double>(seed), 0.001)});
  }
  EXPECT_THAT(level_sentences(read_study(made.store(), {.baseline = "none"}), 0, Against::bits_up)[0],
              HasSubstr("top is ahead of none at 600 bit up on average: "));
}

TEST(LevelSentences, AStudyWithoutAllItsRunsIsNotComplete) {
  for (const double planned : {2.0, 6.0}) {
    MadeStore made;
    for (const char* method : {"none", "top"}) {
      MadeRun run{method, "1", 1, RunStatus::done, steadily(10, 30, 1, 0.01)};
      run.constants = {{kRunsOfStudy, planned}};
      made.add(run);
    }
    const std::vector<std::string> notes = read_study(made.store(), {.baseline = "none"}).notes;
    const auto note = Contains(HasSubstr("the study is not complete: 2 of the 6 runs of 'made' are stored"));
    if (planned > 2)
      EXPECT_THAT(notes, note);
    else
      EXPECT_THAT(notes, Not(Contains(HasSubstr("not complete"))));
  }
}

}  // namespace
}  // namespace fl
