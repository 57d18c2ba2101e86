// Tests that rows of another machine are refused unless their sizes and numbers fit each other.
#include "scenarios/data/dataset_archive.hpp"

#include <gmock/gmock.h>

#include "fl_core/state/archive.hpp"

namespace fl {
namespace {

using testing::HasSubstr;

Dataset<double> numbers() {
  Dataset<double> data;
  data.num_rows = 2;
  data.num_features = 4;
  data.num_classes = 2;
  data.allocate_dense();
  data.label = {0, 1};
  return data;
}

Dataset<double> images() {
  Dataset<double> data = numbers();
  data.dense = {};
  data.num_features = 12;
  data.shape = {3, 2, 2};
  data.images.pixels = Buffer<std::uint8_t>(24);
  data.images.mean = data.images.deviation = {0.5, 0.5, 0.5};
  data.images.augment = {.crop = 1, .flip = true};
  return data;
}

Dataset<double> ratings() {
  Dataset<double> data = numbers();
  data.dense = {};
  data.label.clear();
  data.num_classes = 0;
  data.num_features = 2;
  data.vocabulary = {.size = 5, .num_users = 3};
  data.tokens = Buffer<std::int32_t>(4);
  const std::vector<std::int32_t> pairs = {0, 3, 2, 4};
  std::ranges::copy(pairs, data.tokens.data());
  data.target = {1, 1};
  return data;
}

Dataset<double> text() {
  Dataset<double> data = numbers();
  data.dense = {};
  data.num_classes = 7;
  data.vocabulary = {.size = 7, .next_token = NextToken::after_each};
  data.tokens = Buffer<std::int32_t>(8);
  return data;
}

// Returns what reading says of data that were written as they are.
std::string answer(Dataset<double> data) {
  Archive written;
  persist(written, data);
  Archive archive(written.bytes());
  Dataset<double> read;
  try {
    persist(archive, read);
  } catch (const ArchiveError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(DatasetArchive, TakesWhatIsWritten) {
  EXPECT_EQ(answer(numbers()), "accepted");
  EXPECT_EQ(answer(images()), "accepted");
  EXPECT_EQ(answer(ratings()), "accepted");
  EXPECT_EQ(answer(text()), "accepted");
  for (const auto whole : {numbers, images, ratings, text}) EXPECT_EQ(answer(form_of(whole())), "accepted");
}

struct Damage {
  std::string words;
  Dataset<double> (*whole)();
  void (*make)(Dataset<double>&);
};

TEST(DatasetArchive, RefusesWhatDoesNotFit) {
  // 2^62 + 2 classes of three features and a bias are 8 parameters modulo 2^64.
  const std::vector<Damage> all = {
      {"a size is beyond 2^31", numbers, [](Dataset<double>& data) { data.num_classes = (std::size_t{1} << 62) + 2; }},
      {"a size is beyond 2^31", text, [](Dataset<double>& data) { data.vocabulary.size = std::size_t{1} << 40; }},
      {"more users than users and items together", ratings, [](Dataset<double>& data) { data.vocabulary.num_users = 6; }},
      {"the shape is not that of its rows", images,
       [](Dataset<double>& data) {
         data.shape = {3, 2, 200};
       }},
      {"the shape is not that of its rows", images,
       [](Dataset<double>& data) {
         data.shape = {0, 2, 2};
       }},
      {"the shape is not that of its rows", images,
       [](Dataset<double>& data) {
         data.shape = {3, std::size_t{1} << 62, 4};
       }},
      {"the means are not those of its channels", images, [](Dataset<double>& data) { data.images.mean.pop_back(); }},
      {"the deviations are not those of its channels", images, [](Dataset<double>& data) { data.images.deviation = {1}; }},
      {"a deviation is not above 0", images, [](Dataset<double>& data) { data.images.deviation[1] = 0; }},
      {"cut at a place far outside", images, [](Dataset<double>& data) { data.images.augment.crop = std::int64_t{1} << 40; }},
      {"no images would be changed", numbers, [](Dataset<double>& data) { data.images.augment.flip = true; }},
      {"a token is beyond its vocabulary", text, [](Dataset<double>& data) { data.tokens[3] = 7; }},
      {"fewer classes than tokens", text, [](Dataset<double>& data) { data.num_classes = 6; }},
      {"ratings are not pairs", numbers, [](Dataset<double>& data) { data.vocabulary = {.size = 5, .num_users = 3}; }},
      {"a rating is not of an item by a user", ratings, [](Dataset<double>& data) { data.tokens[1] = 2; }},
      {"a rating is not of an item by a user", ratings, [](Dataset<double>& data) { data.tokens[2] = 3; }},
      {"a label is beyond its classes", numbers, [](Dataset<double>& data) { data.label[0] = 2; }},
  };
  for (const Damage& damage : all) {
    Dataset<double> data = damage.whole();
    damage.make(data);
    EXPECT_THAT(answer(std::move(data)), HasSubstr(damage.words));
  }
}

}  // namespace
}  // namespace fl
