// Tests changed bytes of a paused run: the run is rejected, or ends with the same results because the byte is never read. A checkpoint with
// arbitrary contents, even with the right checksum, is rejected or used, and nothing else happens.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "tests/support/paused_run.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using test::PausedRun;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kLittleState = 6000;  // bytes; 24 clients have 11 KB
constexpr int kTurns = test::kSanitized ? 100 : 500;

// Returns the place after the name of a section in a checkpoint.
std::size_t place_after(const PausedRun::Bytes& bytes, const std::string& section) {
  const auto at = std::search(bytes.begin(), bytes.end(), section.begin(), section.end());
  EXPECT_NE(at, bytes.end()) << section;
  return static_cast<std::size_t>(at - bytes.begin()) + section.size();
}

TEST(DamagedState, WithoutDamageARunGoesOn) {
  for (const std::uint64_t memory : {std::uint64_t{0}, kLittleState}) {
    PausedRun run(memory);
    EXPECT_EQ(run.pages.empty(), memory == 0);
    EXPECT_THAT(run.damage(), IsEmpty());
    EXPECT_EQ(run.refusal(), std::nullopt);
    EXPECT_TRUE(run.is_same());
  }
}

TEST(DamagedState, AnyByteOfACheckpointThatTurnsIsFound) {
  for (const std::uint64_t memory : {std::uint64_t{0}, kLittleState}) {
    PausedRun run(memory);
    std::mt19937 random(1);
    for (int turn = 0; turn < kTurns; ++turn) {
      PausedRun::Bytes turned = run.checkpoint;
      const std::size_t at = random() % turned.size();
      turned[at] = static_cast<char>(turned[at] ^ (1 << random() % 8));
      run.put(turned, run.pages);
      const auto refusal = run.refusal();
      ASSERT_TRUE(refusal) << "byte " << at;
      EXPECT_THAT(*refusal, HasSubstr("do not match their checksum")) << "byte " << at;
      EXPECT_FALSE(run.damage().empty()) << "byte " << at;
    }
  }
}

TEST(DamagedState, AnyByteOfAPageFileThatTurnsIsFoundOrNeverRead) {
  PausedRun run(kLittleState);
  std::mt19937 random(2);
  int refused = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    PausedRun::Bytes turned = run.pages;
    const std::size_t at = random() % turned.size();
    turned[at] = static_cast<char>(turned[at] ^ (1 << random() % 8));
    run.put(run.checkpoint, turned);
    const bool is_damaged = !run.damage().empty();
    const auto refusal = run.refusal();
    EXPECT_EQ(refusal.has_value(), is_damaged) << "byte " << at;
    if (refusal) {
      ++refused;
      EXPECT_THAT(*refusal, HasSubstr("its state file is damaged: ")) << "byte " << at;
      EXPECT_THAT(*refusal, HasSubstr("does not match its checksum; without it (remove the file) the run starts anew"));
    } else {
      EXPECT_TRUE(run.is_same()) << "byte " << at;
    }
  }
  EXPECT_GT(refused, kTurns / 2);
}

TEST(DamagedState, ATruncatedOrMissingPageFileIsTold) {
  PausedRun run(kLittleState);
  run.put(run.checkpoint, std::span(run.pages).first(run.pages.size() / 2));
  EXPECT_THAT(run.damage(), testing::Contains(HasSubstr("the file ends before, after " + std::to_string(run.pages.size() / 2) + " bytes")));
  EXPECT_TRUE(run.refusal());
}

// A program that writes checkpoints can set their checksums. Values, and therefore results, may then differ; places in memory, sizes and
// rounds may not.
TEST(DamagedState, ATurnedByteUnderTheRightChecksumDoesNoHarm) {
  for (const std::uint64_t memory : {std::uint64_t{0}, kLittleState}) {
    PausedRun run(memory);
    std::mt19937 random(3);
    int refused = 0;
    for (int turn = 0; turn < kTurns; ++turn) {
      PausedRun::Bytes turned = run.checkpoint;
      const std::size_t at = random() % (turned.size() - 8);
      turned[at] = static_cast<char>(random());
      PausedRun::seal(turned);
      run.put(turned, run.pages);
      refused += run.refusal() ? 1 : 0;
    }
    EXPECT_GT(refused, 0);
  }
}

TEST(DamagedState, WhatCannotBeOfTheRunIsRefused) {
  PausedRun run(0);
  const auto with = [&](const std::string& section, std::size_t offset, auto value) {
    PausedRun::Bytes changed = run.checkpoint;
    const std::size_t at = place_after(changed, section) + offset;
    std::memcpy(changed.data() + at, &value, sizeof value);
    PausedRun::seal(changed);
    run.put(changed, run.pages);
    return run.refusal().value_or("accepted");
  };
  const std::uint64_t many = std::uint64_t{1} << 60;
  EXPECT_THAT(with("rounds", 0, many), HasSubstr("in 'rounds': a list announces more elements than bytes are left"));
  EXPECT_THAT(with("rounds", 8, std::uint64_t{77}), HasSubstr("in 'rounds': row 0 is of round 77"));
  EXPECT_THAT(with("layers", 0, std::uint8_t{7}), HasSubstr("in 'layers': a byte that says yes or no is 7"));
  EXPECT_THAT(with("optimizer", 0, std::uint64_t{1}), HasSubstr("in "));
  EXPECT_THAT(with("state", 0, std::uint8_t{9}), HasSubstr("in 'state': it is kept in way 9"));
}

}  // namespace
}  // namespace fl
