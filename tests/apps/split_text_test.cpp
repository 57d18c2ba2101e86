// Tests the text form of a split: the contents of a line, the number of shown clients, and splits with very many classes or none.
#include "apps/fedbits/split_text.hpp"

#include <gmock/gmock.h>

#include <sstream>

#include "study/output/numbers.hpp"

namespace fl {
namespace {

using testing::HasSubstr;
using testing::Not;

SplitStatistics split_of(const std::vector<Shard>& shards, const std::vector<std::int32_t>& label, std::size_t num_classes) {
  SplitStatistics split;
  split.hash = hash_of(shards);
  split.seed = 3;
  for (std::size_t c = 0; c < num_classes; ++c) split.classes.push_back("c" + std::to_string(c));
  split.clients = measure_clients(shards, label, num_classes);
  return split;
}

std::vector<std::string> lines_of(const SplitStatistics& split) {
  std::ostringstream out;
  draw(split, out);
  std::vector<std::string> lines;
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  for (const std::string& line : lines) EXPECT_LE(display_width(line), 80u) << line;
  return lines;
}

TEST(SplitText, SaysWhatEachClientHolds) {
  const std::vector<std::int32_t> label = {0, 0, 0, 0, 0, 0, 0, 1, 2, 2};
  const std::vector<std::string> lines = lines_of(split_of({{0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}}, label, 3));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_THAT(lines[0], HasSubstr("data seed 3: 2 clients, 5 to 5 rows (median 5)"));
  EXPECT_EQ(lines[1], "mean EMD 0.60, mean label entropy 0.76 of 1.58 bits, mean sum q^2 0.680");
  EXPECT_EQ(lines[4], "     0        5 ██████████  0.60  0.00  ██ ·· ·· ");
  EXPECT_EQ(lines[5], "     1        5 ██████████  0.60  1.52  ▓▓ ▒▒ ▓▓ ");
}

TEST(SplitText, ShowsFortyClientsAndFoldsManyClasses) {
  std::vector<Shard> shards(50);
  std::vector<std::int32_t> label;
  for (std::uint32_t row = 0; row < 5000; ++row) {
    shards[row % 50].push_back(row);
    label.push_back(static_cast<std::int32_t>(row / 50));
  }
  const std::vector<std::string> lines = lines_of(split_of(shards, label, 100));
  ASSERT_EQ(lines.size(), 4u + kMostShownClients + 1);
  EXPECT_THAT(lines[3], HasSubstr("classes, 3 in a column"));
  EXPECT_EQ(lines.back(), "... and 10 more; --split-csv FILE writes all of them");
}

TEST(SplitText, SaysWhatThePartitionerSays) {
  SplitStatistics split = split_of({{0, 1}, {2, 3}}, {0, 0, 0, 1}, 2);
  split.note = "classes run out";
  EXPECT_EQ(lines_of(split).at(1), "classes run out");
}

TEST(SplitText, NeedsNoClasses) {
  const SplitStatistics split = split_of({{0}, {1, 2, 3, 4}}, {}, 0);
  const std::vector<std::string> lines = lines_of(split);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], HasSubstr("1 to 4 rows"));
  EXPECT_THAT(lines[2], Not(HasSubstr("·")));
  std::ostringstream out;
  write_csv(std::span(&split, 1), out);
  EXPECT_THAT(out.str(), HasSubstr(",0,1,,,,\n"));
}

}  // namespace
}  // namespace fl
