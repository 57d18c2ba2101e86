// Tests text by role, plain text and words: the real files, small files with known rows, and damaged files.
#include <gmock/gmock.h>

#include <set>

#include "tests/support/data_folder.hpp"
#include "tests/support/test_data.hpp"

namespace fl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// A row and its label as text: "to be or no|t".
template <class T>
std::string shown(const Dataset<T>& data, std::size_t row, const std::string& between = "") {
  std::string text;
  const auto name = [&data](std::int32_t token) { return data.class_names[static_cast<std::size_t>(token)]; };
  for (std::size_t j = 0; j < data.num_features; ++j) text += name(data.tokens[row * data.num_features + j]) + between;
  return text + "|" + name(data.label[row]);
}
template <class T>
std::vector<std::string> all_shown(const Dataset<T>& data, const std::string& between = "") {
  std::vector<std::string> rows;
  for (std::size_t row = 0; row < data.num_rows; ++row) rows.push_back(shown(data, row, between));
  return rows;
}

class Text : public test::DataFolderTest {
 protected:
  static FileDataOptions options(const std::string& name, const TextOptions& text) {
    const DataFormat format = name.ends_with(".txt") ? DataFormat::text : DataFormat::automatic;
    return {.name = name, .formats = {.format = format, .text = text}};
  }
};

TEST_F(Text, RolesAreClientsInOrderOfAppearance) {
  write("plays/my_roles.tsv", "p\tA\tabcd\np\tB\txy\nq\tA\tuvwuv\np\tA\t\\n\\\\e\n");
  const auto data = load(options("plays", {.sequence = 3}));
  // p/A says "abcd\n\n\\e"; p/B has too little for a row; q/A says "uvwuv".
  EXPECT_THAT(all_shown(data.train), ElementsAre("abc|d", "d\\n\\n|\\", "uvw|u"));
  EXPECT_THAT(data.train.client_begin, ElementsAre(0, 2, 3));
  EXPECT_EQ(data.train.num_features, 3u);
  EXPECT_EQ(data.train.vocabulary.size, 12u);  // newline, backslash, a-e, u-y: also what the left-out role says
  EXPECT_EQ(data.train.num_classes, 12u);
  EXPECT_FALSE(data.test.has_value());

  EXPECT_EQ(data.num_dropped_roles, 1u);
  EXPECT_EQ(load(options("plays", {.sequence = 3, .stride = 1, .min_text = 6})).num_dropped_roles, 2u);
  EXPECT_THAT(all_shown(load(options("plays", {.sequence = 3, .stride = 1, .min_text = 6})).train),
              ElementsAre("abc|d", "bcd|\\n", "cd\\n|\\n", "d\\n\\n|\\", "\\n\\n\\|e"));
  FileDataOptions first_rows = options("plays", {.sequence = 3});
  first_rows.rows = 1;
  EXPECT_THAT(load(first_rows).train.client_begin, ElementsAre(0, 1));
}

TEST_F(Text, TheLastOfEachRoleIsHeldOut) {
  write("plays/my_roles.tsv", "p\tA\tabcdefghij\np\tB\tklmnopqrst\n");
  FileDataOptions with = options("plays", {.sequence = 2, .stride = 1});
  with.test_fraction = 0.45;  // 4 of 10 characters
  const auto data = load(with);
  EXPECT_TRUE(data.is_held_out);
  EXPECT_THAT(all_shown(data.train), ElementsAre("ab|c", "bc|d", "cd|e", "de|f", "kl|m", "lm|n", "mn|o", "no|p"));
  ASSERT_TRUE(data.test.has_value());
  EXPECT_THAT(all_shown(*data.test), ElementsAre("gh|i", "hi|j", "qr|s", "rs|t"));
  with.test_fraction = 0.2;
  EXPECT_THAT(error_of(with), StartsWith("plays/my_roles.tsv: test_fraction = 0.2 of no role is longer than sequence = 2"));
}

TEST_F(Text, EveryPositionMayHaveALabel) {
  write("plays/my_roles.tsv", "p\tA\tabcdefg\n");
  const auto last = load(options("plays", {.sequence = 3}));
  const auto each = load(options("plays", {.sequence = 3, .labels = NextToken::after_each}));
  EXPECT_EQ(all_shown(each.train), all_shown(last.train));
  EXPECT_EQ(last.train.labels_per_row(), 1u);
  ASSERT_EQ(each.train.labels_per_row(), 3u);
  const std::vector<std::uint32_t> rows{1, 0};  // def|g, abc|d
  std::vector<std::int32_t> labels(6), only(2);
  each.train.gather_labels(rows, labels.data());
  EXPECT_THAT(labels, ElementsAre(4, 5, 6, 1, 2, 3));
  last.train.gather_labels(rows, only.data());
  EXPECT_THAT(only, ElementsAre(6, 3));
}

TEST_F(Text, RefusesDamagedRoles) {
  const auto error_with = [this](const std::string& text) {
    write("plays/my_roles.tsv", text);
    return error_of(options("plays", {.sequence = 3}));
  };
  EXPECT_THAT(error_with("p\tA\tabcd\np\tB\n"), StartsWith("plays/my_roles.tsv:2:4: the line has no three columns"));
  EXPECT_THAT(error_with("p\tA\tab\tcd\n"), StartsWith("plays/my_roles.tsv:1:7: the line has more than three columns"));
  EXPECT_THAT(error_with("p\t\tabcd\n"), StartsWith("plays/my_roles.tsv:1:3: the name of the play or the role is empty"));
  EXPECT_THAT(error_with("p\tA\tab\\cd\n"), StartsWith("plays/my_roles.tsv:1:7: a backslash must be followed by"));
  EXPECT_THAT(error_with("p\tA\tabcd\\"), StartsWith("plays/my_roles.tsv:1:9: a backslash must be followed by"));
  EXPECT_THAT(error_with("p\tA\tabc\n"), StartsWith("plays/my_roles.tsv: none of 1 roles has the text for one row"));
  EXPECT_THAT(error_with(""), StartsWith("plays/my_roles.tsv: the file is empty"));
  EXPECT_THAT(error_with("p\tA\tabc\xFFz\n"), HasSubstr("the byte 0xff is not UTF-8"));
}

TEST_F(Text, PlainTextIsOneStretch) {
  write("mine.txt", "to be or\nn\xC3\xB6t");
  const auto data = load(options("mine.txt", {.sequence = 4}));
  EXPECT_THAT(all_shown(data.train), ElementsAre("to b|e", "e or|\\n"));
  EXPECT_TRUE(data.train.client_begin.empty());
  EXPECT_EQ(data.train.vocabulary.size, 9u);  // newline, blank, b, e, n, o, r, t, o with dots
  EXPECT_EQ(data.train.class_names.back(), "\xC3\xB6");

  write("other.txt", "nobet");
  FileDataOptions with_test = options("mine.txt", {.sequence = 4});
  with_test.test = "other.txt";
  EXPECT_THAT(all_shown(*load(with_test).test), ElementsAre("nobe|t"));
  write("other.txt", "no\nbex");
  EXPECT_THAT(error_of(with_test), StartsWith("other.txt:2:3: the character 'x' is not in the training text"));
  write("mine.txt", "abc\nd\xE4 f");
  EXPECT_THAT(error_of(options("mine.txt", {.sequence = 4})), StartsWith("mine.txt:2:2: the byte 0xe4 is not UTF-8"));
  write("mine.txt", "abcd");
  EXPECT_THAT(error_of(options("mine.txt", {.sequence = 4})), StartsWith("mine.txt: no text is longer than sequence = 4"));
}

// Bytes that decoders have let through: forms longer than needed, surrogates, beyond the last code point, ends in the middle.
TEST_F(Text, RefusesWhatIsNotUtf8) {
  for (const char* bad :
       {"\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\x80", "\xE2\x82", "\xC3"}) {
    write("mine.txt", std::string("abcd") + bad);
    EXPECT_THAT(error_of(options("mine.txt", {.sequence = 2})), StartsWith("mine.txt:1:5: the byte 0x")) << testing::PrintToString(bad);
  }
  write("mine.txt",
        "\xF0\x9F\x98\x80\xE2\x82\xAC"
        "a");
  EXPECT_THAT(all_shown(load(options("mine.txt", {.sequence = 2})).train), ElementsAre("\xF0\x9F\x98\x80\xE2\x82\xAC|a"));
}

TEST_F(Text, FilesOfNumbersThatEndInTxtStayRows) {
  write("rows.txt", "1 1:1\n2 1:2\n");
  EXPECT_EQ(load({.name = "rows.txt"}).train.vocabulary.size, 0u);
  EXPECT_EQ(load({.name = "rows.txt"}).train.num_rows, 2u);
}

TEST_F(Text, WordsAreNumberedByFirstAppearance) {
  write("wiki/wiki.train.tokens", " a b <unk> a\n\n c b \n");
  write("wiki/wiki.test.tokens", "c d a\n");
  const auto data = load(options("wiki", {.sequence = 3}));
  EXPECT_THAT(data.train.class_names, ElementsAre("a", "b", "<unk>", "<eos>", "c"));
  EXPECT_THAT(all_shown(data.train, " "), ElementsAre("a b <unk> |a", "a <eos> <eos> |c"));
  ASSERT_TRUE(data.test.has_value());
  EXPECT_THAT(all_shown(*data.test, " "), ElementsAre("c <unk> a |<eos>"));
  write("wiki/wiki.train.tokens", "a b c a\n");
  EXPECT_THAT(error_of(options("wiki", {.sequence = 3})), StartsWith("wiki/wiki.test.tokens: word 2, \"d\", is not in the training text"));
}

TEST_F(Text, KeysWithoutEffectAreErrorsAllAtOnce) {
  write("rows", "1 1:1\n2 1:2\n");
  const std::string error = error_of(
      {.name = "rows", .formats = {.text = {.sequence = 5, .stride = 2, .min_text = 3}, .table = {.label = "x", .categories = {"y"}}}});
  for (const char* key : {"sequence", "stride", "min_text", "label_column", "categories"})
    EXPECT_THAT(error, HasSubstr(std::string("data.") + key + ": has no effect on a data set in the format libsvm"));
  write("mine.txt", "to be or not");
  EXPECT_THAT(error_of({.name = "mine.txt",
                        .features = 3,
                        .storage = Storage::dense,
                        .labels = LabelKind::target,
                        .formats = {.format = DataFormat::text}}),
              AllOf(HasSubstr("data.features"), HasSubstr("data.storage"), HasSubstr("data.labels")));
}

TEST(RealText, ShakespeareByRole) {
  FL_NEED_DATA(path, "shakespeare");
  const DataCatalog catalog(path.parent_path());
  const auto data = load_data<float>({.name = "shakespeare", .test_fraction = 0.2}, catalog);
  EXPECT_EQ(data.train.num_features, 80u);
  // Counts by a script that splits the lines and joins the speeches on its own.
  EXPECT_EQ(data.train.vocabulary.size, 76u);
  EXPECT_EQ(data.train.client_begin.size(), 1129u + 1);
  EXPECT_EQ(data.train.num_rows, 42318u);
  EXPECT_EQ(shown(data.train, 0), "So shaken as we are, so wan with care,\\nFind we a time for frighted peace to pant|,");
  ASSERT_TRUE(data.test.has_value());
  EXPECT_EQ(data.test->num_rows, 10130u);
  const auto everything = load_data<float>({.name = "shakespeare"}, catalog);
  EXPECT_EQ(everything.train.client_begin.size(), 1157u + 1);  // of 1,377 roles
  EXPECT_EQ(everything.train.num_rows, 53059u);
  const auto long_roles = load_data<float>({.name = "shakespeare", .formats = {.text = {.min_text = 10000}}}, catalog);
  EXPECT_EQ(long_roles.train.client_begin.size(), 134u + 1);
}

TEST(RealText, TinyShakespeare) {
  FL_NEED_DATA(path, "shakespeare/input.txt");
  const auto data = load_data<float>({.name = "shakespeare/input.txt", .formats = {.text = {.sequence = 64}}},
                                     DataCatalog(path.parent_path().parent_path()));
  EXPECT_EQ(data.train.vocabulary.size, 65u);
  EXPECT_EQ(data.train.num_rows, (1115394u - 64 - 1) / 64 + 1);
  EXPECT_THAT(shown(data.train, 0), StartsWith("First Citizen:\\nBefore we proceed"));
}

TEST(RealText, WikiText2) {
  FL_NEED_DATA(path, "wikitext-2");
  const auto data = load_data<float>({.name = "wikitext-2", .formats = {.text = {.sequence = 35}}}, DataCatalog(path.parent_path()));
  EXPECT_EQ(data.train.vocabulary.size, 33278u);
  EXPECT_EQ(data.train.num_rows, (2088628u - 35 - 1) / 35 + 1);
  EXPECT_EQ(data.test->num_rows, (245569u - 35 - 1) / 35 + 1);
}

}  // namespace
}  // namespace fl
