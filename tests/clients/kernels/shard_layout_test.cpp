// Tests gradients over whole shards of sparse rows of ones: the bits of plain loops, and of the same model without layouts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "clients/kernels/shard_layouts.hpp"
#include "clients/learning/expects_shards.hpp"
#include "clients/learning/loss_with_gradient.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/memory/workspace.hpp"
#include "tests/clients/problem_data.hpp"

namespace fl::test {
namespace {

using kernels::kLanes;
using kernels::ShardLayouts;
using kernels::SlicedLists;

// Compares bits, so that the sign of a zero counts.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

std::vector<double> random_numbers(std::size_t count, std::uint64_t seed) {
  RandomSequence random(seed, Purpose::start);
  std::vector<double> x(count);
  for (auto& v : x) v = random.normal();
  return x;
}

using Lists = std::vector<std::vector<std::uint32_t>>;

SlicedLists sliced(const Lists& lists, std::size_t filler) {
  std::vector<std::uint32_t> lengths;
  for (const auto& list : lists) lengths.push_back(static_cast<std::uint32_t>(list.size()));
  return {lengths, filler, [&](const auto& visit) {
            for (std::uint32_t l = 0; l < lists.size(); ++l)
              for (const std::uint32_t index : lists[l]) visit(l, index);
          }};
}

// Returns lists of random lengths up to `longest` with indices below `filler`, and one of zeros.
Lists random_lists(std::size_t count, std::size_t longest, std::size_t filler) {
  RandomSequence random(17 + count, Purpose::synthetic_data);
  Lists lists(count);
  for (auto& list : lists) {
    list.resize(random.below(longest + 1));
    for (auto& index : list) index = static_cast<std::uint32_t>(random.below(filler));
  }
  lists[count / 2].assign(12, 0);
  return lists;
}

// Sums a row as the loops over rows do: vectors are added to two vectors in turn, and their sum is halved until one number remains.
double sum_of_row(const std::vector<std::uint32_t>& list, const std::vector<double>& x) {
  double part[2][kLanes] = {};
  for (std::size_t j = 0; j < list.size(); ++j) part[j / kLanes % 2][j % kLanes] += x[list[j]];
  for (int i = 0; i < kLanes; ++i) part[0][i] += part[1][i];
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) part[0][i] += part[0][i + half];
  return part[0][0];
}

TEST(SlicedLists, SumsHaveTheOrderOfLoopsOverRows) {
  for (const std::size_t count : {1u, 7u, 8u, 9u, 300u}) {
    const Lists lists = random_lists(count, SlicedLists::kShort, 50);
    std::vector<double> x = random_numbers(51, 3), z(count, 7), expected(count, 7);
    x[0] = -0.0;  // the sum of these alone is +0.0
    x[50] = 0;
    sliced(lists, 50).sum_lists(x.data(), z.data());
    for (std::size_t l = 0; l < count; ++l)
      if (!lists[l].empty()) expected[l] = sum_of_row(lists[l], x);
    EXPECT_TRUE(same_bits(z, expected)) << count << " lists";
  }
}

TEST(SlicedLists, AddsOneTermAfterAnother) {
  for (const std::size_t count : {1u, 7u, 8u, 9u, 300u}) {
    const Lists lists = random_lists(count, 100, 50);
    std::vector<double> x = random_numbers(51, 4), acc = random_numbers(count, 5);
    for (std::size_t l = 0; l < count; l += 2) acc[l] = acc[count / 2] = -0.0;
    x[0] = -0.0;  // added to -0.0, these leave -0.0
    x[50] = -0.0;
    std::vector<double> expected = acc;
    sliced(lists, 50).add_lists(x.data(), acc.data());
    for (std::size_t l = 0; l < count; ++l)
      for (const std::uint32_t index : lists[l]) expected[l] += x[index];
    EXPECT_TRUE(same_bits(acc, expected)) << count << " lists";
  }
}

// Rows of ones. Every 7th has no entries, every 11th of them has `longest`, and the last features occur in no row.
std::vector<PlainRow> rows_of_ones(std::size_t count, std::size_t features, std::size_t length, std::size_t longest, std::size_t classes) {
  RandomSequence random(31 * count + length, Purpose::synthetic_data);
  std::vector<PlainRow> rows(count);
  for (std::size_t r = 0; r < count; ++r) {
    const std::size_t entries = r % 7 == 3 ? 0 : r % 11 == 5 ? longest : 1 + random.below(2 * length);
    std::map<std::uint32_t, double> entry;
    while (entry.size() < entries) {
      const double u = random.uniform();
      entry[static_cast<std::uint32_t>(u * u * static_cast<double>(features - 5))] = 1;
    }
    rows[r].entries.assign(entry.begin(), entry.end());
    rows[r].label = static_cast<double>(r < classes ? r : random.below(classes));
  }
  return rows;
}

struct LayoutCase {
  std::string label;
  std::size_t rows, features, length, longest, classes;
  std::string model = "logistic_regression";
  bool bias = true;
};

// Results of a model over the rows of a shard.
template <class T>
struct Results {
  std::vector<T> gradient, shared_gradient;
  std::vector<double> losses;
  bool operator==(const Results& other) const {
    return same_bits(gradient, other.gradient) && same_bits(shared_gradient, other.shared_gradient) && same_bits(losses, other.losses);
  }
};

template <class T>
Results<T> results_of(const Model<T>& model, const Dataset<T>& data, const std::vector<T>& x, const Shard& shard, const Exec& exec) {
  const std::size_t P = x.size();
  Results<T> results{std::vector<T>(P), std::vector<T>(P), std::vector<double>(3)};
  const std::span<const std::uint32_t> rows = shard;
  model.gradient(exec, shared_view(x.data(), 1, P), {&rows, 1}, {results.gradient.data(), nullptr, 1, P, P}, &results.losses[0]);
  results.losses[1] =
      dynamic_cast<const LossWithGradient<T>&>(model).gradient_with_loss_sum(exec, x.data(), rows, results.shared_gradient.data());
  results.losses[2] = model.loss_sum(exec, x.data(), data, rows, nullptr);
  return results;
}

// Returns shards of awkward sizes that cover most of the rows: a piece and a bit, a power of two, one row more, few rows.
std::vector<Shard> awkward_shards(std::vector<std::uint32_t> order) {
  std::vector<Shard> shards;
  std::size_t at = 0;
  for (const std::size_t size : {4096u + 70u, 64u, 65u, 256u, 131u, 5u, 1u}) {
    const std::size_t taken = std::min<std::size_t>(size, order.size() - at);
    shards.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(at), order.begin() + static_cast<std::ptrdiff_t>(at + taken));
    at += taken;
  }
  return shards;
}

template <class T>
void expect_bits_of_loops(const LayoutCase& c, bool shuffled, double l2) {
  auto rows = rows_of_ones(c.rows, c.features, c.length, c.longest, c.classes);
  auto data = make_dataset<T>(rows, Storage::sparse, c.features);
  ASSERT_TRUE(data.all_ones());
  const std::vector<std::pair<std::string, Value>> options = {{"bias", Value{c.bias}}};
  const auto loops = make_model<T>(c.model, options, data), arranged = make_model<T>(c.model, options, data);
  for (const auto& model : {loops.get(), arranged.get()}) model->set_regulariser(l2, l2 / 2);
  auto order = all_rows(c.rows);
  if (shuffled) RandomSequence(5, Purpose::partition).shuffle(order.begin(), order.end());
  const std::vector<Shard> shards = awkward_shards(order);
  dynamic_cast<ExpectsShards&>(*arranged).expect_shards(shards);

  const auto numbers = random_numbers(loops->layers().size(), 8);
  std::vector<T> x;
  for (const double number : numbers) x.push_back(static_cast<T>(x.size() % 5 == 0 ? -0.0 : number));
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  for (const Shard& shard : shards) {
    const auto expected = results_of(*loops, data, x, shard, exec);
    for (int request = 0; request < 2; ++request)
      EXPECT_TRUE(results_of(*arranged, data, x, shard, exec) == expected)
          << c.label << ", " << shard.size() << " rows, request " << request << (shuffled ? ", shuffled" : "");
  }
}

TEST(ShardLayout, GivesTheBitsOfLoopsOverRows) {
  const std::vector<LayoutCase> cases = {
      {"short rows", 5000, 60, 7, 16, 2},           {"short rows without bias", 5000, 60, 7, 16, 2, "logistic_regression", false},
      {"rows of 32 and more", 5000, 80, 10, 50, 2}, {"blocks of more than 2048 entries", 5000, 120, 31, 90, 2},
      {"five classes", 5000, 40, 9, 33, 5},         {"targets", 5000, 50, 8, 20, 9, "linear_regression"},
      {"one feature of several", 300, 7, 1, 1, 2},
  };
  for (const LayoutCase& c : cases)
    for (const bool shuffled : {false, true})
      for (const double l2 : {0.0, 0.3}) {
        expect_bits_of_loops<double>(c, shuffled, l2);
        expect_bits_of_loops<float>(c, shuffled, l2);
      }
}

// Feature f > 0 is in the first f rows in order, or in others. Slopes are -0.0 where the margin is large and right, and so is the
// regulariser's at -0.0. Loops over rows make +0.0 of the slopes of some blocks and not of others.
TEST(ShardLayout, KeepsTheSignsOfZeros) {
  constexpr std::size_t kRows = 128, kFeatures = 9;
  std::vector<PlainRow> rows(kRows);
  for (std::uint32_t r = 0; r < kRows; ++r) {
    rows[r] = {r % 64 < 63 ? 1.0 : -1.0, {{0, 1.0}}};
    for (std::uint32_t f = r % 64 + 1; f < kFeatures; ++f) rows[r].entries.emplace_back(f, 1.0);
  }
  const auto data = make_dataset<double>(rows, Storage::sparse, kFeatures);
  const auto loops = make_model<double>("logistic_regression", {}, data), arranged = make_model<double>("logistic_regression", {}, data);
  Shard turned = all_rows(kRows), first = all_rows(64);
  std::reverse(turned.begin() + 64, turned.end());
  const std::vector<Shard> shards = {first, turned, {first.rbegin(), first.rend()}};
  dynamic_cast<ExpectsShards&>(*arranged).expect_shards(shards);
  for (const auto& model : {loops.get(), arranged.get()}) model->set_regulariser(0.1, 0);
  std::vector<double> x(kFeatures + 1, -0.0);
  x[0] = 1000;
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  std::size_t negative = 0, zeros = 0;
  for (const Shard& shard : shards) {
    const auto expected = results_of(*loops, data, x, shard, exec);
    for (const double v : expected.gradient) zeros += v == 0, negative += v == 0 && std::signbit(v);
    for (int request = 0; request < 2; ++request) EXPECT_TRUE(results_of(*arranged, data, x, shard, exec) == expected) << request;
  }
  EXPECT_GT(zeros, negative);
  EXPECT_GT(negative, 0u) << "the case has lost its purpose";
}

TEST(ShardLayout, HasTheSameBitsOnSeveralThreads) {
  const auto data = make_dataset<double>(rows_of_ones(2000, 60, 7, 40, 2), Storage::sparse, 60);
  const auto loops = make_model<double>("logistic_regression", {}, data), arranged = make_model<double>("logistic_regression", {}, data);
  const std::vector<Shard> shards = contiguous_blocks(all_rows(2000), 4);
  dynamic_cast<ExpectsShards&>(*arranged).expect_shards(shards);
  const std::vector<double> x = random_numbers(61, 2);
  ThreadPool pool(4);
  std::vector<Results<double>> expected, results(64);
  for (const Shard& shard : shards) expected.push_back(results_of(*loops, data, x, shard, pool.exec(0)));
  pool.parallel_for(64, [&](std::uint32_t i, const Exec& exec) { results[i] = results_of(*arranged, data, x, shards[i / 2 % 4], exec); });
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(results[i] == expected[i / 2 % 4]) << i;
}

TEST(ShardLayouts, AreMadeAtTheSecondRequestForAShard) {
  const auto data = make_dataset<double>(rows_of_ones(400, 40, 7, 20, 2), Storage::sparse, 40);
  const std::vector<Shard> shards = contiguous_blocks(all_rows(400), 2);
  ShardLayouts<double> layouts;
  layouts.expect_shards(shards);
  EXPECT_EQ(layouts.layout_of(data, shards[0]), nullptr);
  const auto* layout = layouts.layout_of(data, shards[0]);
  ASSERT_NE(layout, nullptr);
  EXPECT_EQ(layouts.layout_of(data, shards[0]), layout);
  for (int request = 0; request < 3; ++request) {
    const Shard equal(shards[0].begin(), shards[0].end());
    EXPECT_EQ(layouts.layout_of(data, equal), nullptr) << "rows elsewhere, which may change";
    EXPECT_EQ(layouts.layout_of(data, std::span(shards[0]).first(150)), nullptr) << "a part of a shard";
  }
}

// Few rows, few entries per column, too many features, and features that are not all one keep the loops over rows.
TEST(ShardLayouts, AreMadeWhereTheyPay) {
  const auto makes_one = [](const Dataset<double>& data, const std::vector<Shard>& shards) {
    ShardLayouts<double> layouts;
    layouts.expect_shards(shards);
    static_cast<void>(layouts.layout_of(data, shards[0]));
    return layouts.layout_of(data, shards[0]) != nullptr;
  };
  const auto rows = rows_of_ones(400, 40, 7, 20, 2);
  EXPECT_TRUE(makes_one(make_dataset<double>(rows, Storage::sparse, 40), {all_rows(400)}));
  EXPECT_FALSE(makes_one(make_dataset<double>(rows, Storage::sparse, 40), {all_rows(20)}));
  EXPECT_FALSE(makes_one(make_dataset<double>(rows, Storage::sparse, 4000), {all_rows(400)}));
  const auto many = rows_of_ones(70000, 40, 7, 20, 2);
  EXPECT_TRUE(makes_one(make_dataset<double>(many, Storage::sparse, 65535), {all_rows(70000)}));
  EXPECT_FALSE(makes_one(make_dataset<double>(many, Storage::sparse, 65536), {all_rows(70000)}));
  auto halves = rows;
  halves[0].entries[0].second = 0.5;
  EXPECT_FALSE(makes_one(make_dataset<double>(halves, Storage::sparse, 40), {all_rows(400)}));
}

}  // namespace
}  // namespace fl::test
