// Tests what a server waits for: the frames of clients, and which of them are still owed.
#include "net/expected_answers.hpp"

#include <gtest/gtest.h>

namespace fl {
namespace {

using net::Expected;
using net::ExpectedAnswers;
using Kind = Expected::Kind;

TEST(ExpectedAnswersTest, AFrameIsOwedUntilItArrivesOrNobodyWaitsForIt) {
  ExpectedAnswers answers;
  EXPECT_FALSE(answers.is_owed(Kind::memory, 0, 9)) << "nothing is expected";
  answers.expect({{Kind::memory, 3, 0, 2}, {Kind::memory, 3, 0, 5}, {Kind::memory, 3, 0, 7}, {Kind::update, 3, 0, 8}},
                 std::vector<std::uint8_t>{1, 1, 0, 1});
  EXPECT_FALSE(answers.is_owed(Kind::memory, 0, 1));
  EXPECT_TRUE(answers.is_owed(Kind::memory, 0, 2));
  EXPECT_TRUE(answers.is_owed(Kind::memory, 3, 9));
  EXPECT_FALSE(answers.is_owed(Kind::memory, 6, 9)) << "of client 7 it is not required, and client 8 owes another frame";
  EXPECT_TRUE(answers.is_owed(Kind::update, 8, 8));
  static_cast<void>(answers.take({Kind::memory, 3, 0, 2}, {}));
  EXPECT_FALSE(answers.is_owed(Kind::memory, 0, 4));
  answers.give_up(5);
  EXPECT_FALSE(answers.is_owed(Kind::memory, 0, 9));
}

TEST(ExpectedAnswersTest, WhatIsMissingIsOwedAfterTheWaitToo) {
  ExpectedAnswers answers;
  answers.expect({{Kind::memory, 3, 0, 2}, {Kind::memory, 3, 0, 5}});
  static_cast<void>(answers.take({Kind::memory, 3, 0, 5}, {}));
  static_cast<void>(answers.finish());
  EXPECT_TRUE(answers.is_owed(Kind::memory, 2, 2));
  EXPECT_FALSE(answers.is_owed(Kind::memory, 5, 5));
}

}  // namespace
}  // namespace fl
