// Tests what a server waits for: the frames of clients, and which of them are still owed.
#include "net/server/expected_answers.hpp"

#include <gtest/gtest.h>

namespace fl {
namespace {

using net::Expected;
using net::ExpectedAnswers;
using AnswerKind = Expected::Kind;

TEST(ExpectedAnswersTest, AFrameIsOwedUntilItArrivesOrNobodyWaitsForIt) {
  ExpectedAnswers answers;
  EXPECT_FALSE(answers.is_owed(AnswerKind::memory, 0, 9)) << "nothing is expected";
  answers.expect(
      {{AnswerKind::memory, 3, 0, 2}, {AnswerKind::memory, 3, 0, 5}, {AnswerKind::memory, 3, 0, 7}, {AnswerKind::update, 3, 0, 8}},
      std::vector<std::uint8_t>{1, 1, 0, 1});
  EXPECT_FALSE(answers.is_owed(AnswerKind::memory, 0, 1));
  EXPECT_TRUE(answers.is_owed(AnswerKind::memory, 0, 2));
  EXPECT_TRUE(answers.is_owed(AnswerKind::memory, 3, 9));
  EXPECT_FALSE(answers.is_owed(AnswerKind::memory, 6, 9)) << "of client 7 it is not required, and client 8 owes another frame";
  EXPECT_TRUE(answers.is_owed(AnswerKind::update, 8, 8));
  static_cast<void>(answers.take({AnswerKind::memory, 3, 0, 2}, {}));
  EXPECT_FALSE(answers.is_owed(AnswerKind::memory, 0, 4));
  answers.give_up(5);
  EXPECT_FALSE(answers.is_owed(AnswerKind::memory, 0, 9));
}

TEST(ExpectedAnswersTest, WhatIsMissingIsOwedAfterTheWaitToo) {
  ExpectedAnswers answers;
  answers.expect({{AnswerKind::memory, 3, 0, 2}, {AnswerKind::memory, 3, 0, 5}});
  static_cast<void>(answers.take({AnswerKind::memory, 3, 0, 5}, {}));
  static_cast<void>(answers.finish());
  EXPECT_TRUE(answers.is_owed(AnswerKind::memory, 2, 2));
  EXPECT_FALSE(answers.is_owed(AnswerKind::memory, 5, 5));
}

}  // namespace
}  // namespace fl
