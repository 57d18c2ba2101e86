#include "fl_core/message/layer_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fl_core/config/error.hpp"

namespace fl {
namespace {

// W1 [4,3], b1 [4], W2 [2,4], b2 [2]: 26 parameters.
LayerTable table() { return {{{"W1", 0, 4, 3}, {"b1", 12, 4, 1}, {"W2", 16, 2, 4}, {"b2", 24, 2, 1}}}; }

// "begin-end:rowsxcols" of each segment.
std::string text_of(const std::vector<Segment>& segments) {
  std::string text;
  for (const Segment& s : segments)
    text += (text.empty() ? "" : " ") + std::to_string(s.begin) + "-" + std::to_string(s.end) + ":" + std::to_string(s.rows) + "x" +
            std::to_string(s.cols);
  return text;
}

void expect_covers(const Scope& scope) {
  std::vector<Segment> all = scope.segments;
  all.insert(all.end(), scope.excluded.begin(), scope.excluded.end());
  std::sort(all.begin(), all.end(), [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
  std::size_t at = 0;
  for (const Segment& s : all) {
    EXPECT_EQ(s.begin, at);
    EXPECT_EQ(s.rows * s.cols, s.size());
    EXPECT_GT(s.size(), 0u);
    at = s.end;
  }
  EXPECT_EQ(at, scope.P);
}

TEST(MakeScope, ModelIsOneVector) {
  const Scope scope = make_scope(table(), ScopeKind::model, 0, {});
  EXPECT_EQ(text_of(scope.segments), "0-26:26x1");
  EXPECT_TRUE(scope.excluded.empty());
  EXPECT_EQ(scope.P, 26u);
}

TEST(MakeScope, AModelOfOneTensorKeepsItsShape) {
  const Scope scope = make_scope({{{"W", 0, 10, 30}}}, ScopeKind::model, 0, {});
  EXPECT_EQ(text_of(scope.segments), "0-300:10x30");
}

TEST(MakeScope, TensorsKeepTheirShapes) {
  const Scope scope = make_scope(table(), ScopeKind::tensor, 0, {"b1", "b2"});
  EXPECT_EQ(text_of(scope.segments), "0-12:4x3 16-24:2x4");
  EXPECT_EQ(text_of(scope.excluded), "12-16:4x1 24-26:2x1");
  expect_covers(scope);
}

TEST(MakeScope, ExclusionSplitsTheModel) {
  const Scope scope = make_scope(table(), ScopeKind::model, 0, {"W2"});
  EXPECT_EQ(text_of(scope.segments), "0-16:16x1 24-26:2x1");
  expect_covers(scope);
}

TEST(MakeScope, BucketsCrossTensorsButNotExcludedOnes) {
  EXPECT_EQ(text_of(make_scope(table(), ScopeKind::bucket, 10, {}).segments), "0-10:10x1 10-20:10x1 20-26:6x1");
  EXPECT_EQ(text_of(make_scope(table(), ScopeKind::bucket, 13, {}).segments), "0-13:13x1 13-26:13x1");
  EXPECT_EQ(text_of(make_scope(table(), ScopeKind::bucket, SIZE_MAX, {}).segments), "0-26:26x1");
  const Scope split = make_scope(table(), ScopeKind::bucket, 10, {"b1"});
  EXPECT_EQ(text_of(split.segments), "0-10:10x1 10-12:2x1 16-26:10x1");
  expect_covers(split);
}

TEST(MakeScope, StatisticsAreInNoSegmentAndNotExcluded) {
  LayerTable with = {{{"W", 0, 2, 2}, {"b", 4, 2, 1}, {"mean", 6, 2, 1}, {"variance", 8, 2, 1}}};
  with.layers[2].running_rate = with.layers[3].running_rate = 0.1;
  for (const std::vector<std::string>& exclude : {std::vector<std::string>{}, {"mean"}}) {
    const Scope scope = make_scope(with, ScopeKind::model, 0, exclude);
    EXPECT_EQ(text_of(scope.segments), "0-6:6x1");
    EXPECT_TRUE(scope.excluded.empty()) << "they travel raw anyway";
    EXPECT_EQ(text_of(scope.unshared), "6-8:2x1 8-10:2x1");
    EXPECT_EQ(scope.P, 10u);
  }
  EXPECT_EQ(text_of(make_scope(with, ScopeKind::bucket, 4, {}).segments), "0-4:4x1 4-6:2x1");
  const std::vector<ParameterRange> statistics = running_averages_of(with);
  EXPECT_EQ(num_entries(statistics), 4u);
  const double x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  double told[4];
  gather_ranges<double>(statistics, x, told);
  EXPECT_THAT(told, testing::ElementsAre(6, 7, 8, 9));
}

TEST(MakeScope, EmptyLayersHaveNoSegment) {
  const LayerTable with_empty = {{{"W", 0, 2, 2}, {"none", 4, 0, 1}, {"b", 4, 2, 1}}};
  EXPECT_EQ(text_of(make_scope(with_empty, ScopeKind::tensor, 0, {}).segments), "0-4:2x2 4-6:2x1");
}

std::string error_of(ScopeKind kind, std::size_t bucket, const std::vector<std::string>& exclude) {
  try {
    static_cast<void>(make_scope(table(), kind, bucket, exclude));
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(MakeScope, RefusesWhatCannotBe) {
  EXPECT_EQ(error_of(ScopeKind::model, 0, {"b3"}),
            "exclude: the model has no layer \"b3\"; did you mean \"b1\"? (its layers: W1, b1, W2, b2)");
  EXPECT_EQ(error_of(ScopeKind::model, 0, {"encoder"}), "exclude: the model has no layer \"encoder\" (its layers: W1, b1, W2, b2)");
  EXPECT_NE(error_of(ScopeKind::tensor, 0, {"W1", "b1", "W2", "b2"}).find("nothing is left to compress"), std::string::npos);
  EXPECT_NE(error_of(ScopeKind::bucket, 0, {}).find("bucket: must be > 0, is 0"), std::string::npos);
  EXPECT_THROW(static_cast<void>(make_scope({}, ScopeKind::model, 0, {})), ConfigError);
}

}  // namespace
}  // namespace fl
