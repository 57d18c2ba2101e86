// Tests CSV, NumPy arrays and ratings: small files with known numbers, and damaged files.
#include <gmock/gmock.h>

#include <cstring>
#include <limits>

#include "tests/support/data_folder.hpp"

namespace fl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

template <class T>
std::vector<T> row_of(const Dataset<T>& data, std::uint32_t row) {
  std::vector<T> features(data.num_features);
  data.gather({&row, 1}, features.data());
  return features;
}

class Csv : public test::DataFolderTest {
 protected:
  [[nodiscard]] std::string error_with(const std::string& text) const {
    write("t.csv", text);
    return error_of({.name = "t.csv"});
  }
};

TEST_F(Csv, NumbersNamesAndQuotes) {
  write("t.csv",
        "\xEF\xBB\xBF"
        "age, \"job, held\" ,income\r\n"
        "39,\"clerk \"\"A\"\"\",>50K\r\n"
        "\r\n"
        " -1.5e1 , \"two\nlines\" ,<=50K\r\n"
        "+4,clerk B,>50K");
  const auto data = load({.name = "t.csv"});
  EXPECT_EQ(data.train.num_rows, 3u);
  EXPECT_THAT(data.train.class_names, ElementsAre("<=50K", ">50K"));
  EXPECT_THAT(data.train.label, ElementsAre(1, 0, 1));
  // age, then clerk "A", clerk B, two lines
  EXPECT_THAT(row_of(data.train, 0), ElementsAre(39, 1, 0, 0));
  EXPECT_THAT(row_of(data.train, 1), ElementsAre(-15, 0, 0, 1));
  EXPECT_THAT(row_of(data.train, 2), ElementsAre(4, 0, 1, 0));
  EXPECT_EQ(load({.name = "t.csv", .rows = 2}).train.num_rows, 2u);
  EXPECT_EQ(load({.name = "t.csv", .rows = 2}).train.num_features, 4u);
}

TEST_F(Csv, LabelsByColumnAndKind) {
  write("t.csv", "y,zip,x\n10,7,0.5\n9,8,1.5\n10,7,2.5\n");
  const auto with = [this](const TableOptions& table, LabelKind labels = LabelKind::classes) {
    return load({.name = "t.csv", .labels = labels, .formats = {.table = table}}).train;
  };
  EXPECT_THAT(with({.label = "y"}).class_names, ElementsAre("9", "10"));  // as numbers, not by the alphabet
  EXPECT_THAT(with({.label = "y"}).label, ElementsAre(1, 0, 1));
  EXPECT_THAT(with({.label = "1"}).label, ElementsAre(1, 0, 1));
  EXPECT_THAT(row_of(with({.label = "y"}), 1), ElementsAre(8, 1.5));
  EXPECT_THAT(row_of(with({.label = "y", .categories = {"zip"}}), 1), ElementsAre(0, 1, 1.5));
  EXPECT_THAT(with({}, LabelKind::target).target, ElementsAre(0.5, 1.5, 2.5));
  EXPECT_THAT(error_of({.name = "t.csv", .formats = {.table = {.label = "zap"}}}),
              HasSubstr("has no column \"zap\"; did you mean \"zip\"?"));
  EXPECT_THAT(error_of({.name = "t.csv", .formats = {.table = {.label = "4"}}}), HasSubstr("data.label_column"));
  EXPECT_THAT(error_of({.name = "t.csv", .formats = {.table = {.categories = {"q"}}}}), HasSubstr("data.categories"));
}

TEST_F(Csv, TestFileFollowsTheTrainingFile) {
  write("set/train.csv", "x,job,y\n1,a,no\n2,b,yes\n");
  write("set/test.csv", "y,job,x\nyes,c,5\nno,b,6\n");
  const auto data = load({.name = "set"});
  ASSERT_TRUE(data.test.has_value());
  EXPECT_THAT(row_of(*data.test, 0), ElementsAre(5, 0, 0));  // a name that training has not seen
  EXPECT_THAT(row_of(*data.test, 1), ElementsAre(6, 0, 1));
  EXPECT_THAT(data.test->label, ElementsAre(1, 0));
  write("set/test.csv", "y,job,x\nmaybe,c,5\n");
  EXPECT_THAT(error_of({.name = "set"}), StartsWith("set/test.csv:2:1: the label \"maybe\" does not occur in the training file"));
  write("set/test.csv", "y,x\nyes,5\n");
  EXPECT_THAT(error_of({.name = "set"}), StartsWith("set/test.csv: has no column \"job\", which the training file has"));
  write("other.csv", "x,job,y\n7,a,no\n");
  EXPECT_THAT(row_of(*load({.name = "set", .test = "other.csv"}).test, 0), ElementsAre(7, 1, 0));
  EXPECT_FALSE(load({.name = "set", .test = "none"}).test.has_value());
}

TEST_F(Csv, RefusesDamagedFiles) {
  EXPECT_THAT(error_with("x,y\n1,2\n3\n"), StartsWith("t.csv:3:1: the line has 1 cells, the header 2"));
  EXPECT_THAT(error_with("x,y\n1,2\n3,4,\n"), StartsWith("t.csv:3:5: the line has 3 cells, the header 2"));
  EXPECT_THAT(error_with("x,y\n1,2\n  two,3\n"),
              AllOf(StartsWith("t.csv:3:3: \"two\" is not a finite number"), HasSubstr("column \"x\""), HasSubstr("data.categories")));
  EXPECT_THAT(error_with("x,y\n1,2\n,3\n"), StartsWith("t.csv:3:1: the value of column \"x\" is missing"));
  EXPECT_THAT(error_with("x,y\n1,2\n1e999,3\n"), StartsWith("t.csv:3:1: \"1e999\" is not a finite number"));
  EXPECT_THAT(error_with("x,y\n1,2\n+-1,3\n"), StartsWith("t.csv:3:1: \"+-1\" is not a finite number"));
  EXPECT_THAT(error_with("x,y\n\"1,2\n3,4\n"), StartsWith("t.csv:2:1: the quote does not end"));
  EXPECT_THAT(error_with("x,y\n\"1\"2,3\n"), StartsWith("t.csv:2:4: something follows the end of a quoted cell"));
  EXPECT_THAT(error_with("x,y\n"), StartsWith("t.csv: has no line after the header"));
  EXPECT_THAT(error_with("\n\n"), StartsWith("t.csv: has no header line"));
  EXPECT_THAT(error_with("y\n1\n2\n"), StartsWith("t.csv: has no column besides the label"));
  EXPECT_THAT(error_with(""), StartsWith("t.csv: the file is empty"));
}

// An array as numpy.save writes it.
template <class E>
std::string npy(const std::string& type, const std::string& shape, const std::vector<E>& entries, const char* order = "False") {
  std::string header = "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += test::bytes_of({1, 0, static_cast<int>(header.size() & 0xFF), static_cast<int>(header.size() >> 8)}) + header;
  const std::size_t begin = bytes.size();
  bytes.resize(begin + entries.size() * sizeof(E));
  if (!entries.empty()) std::memcpy(bytes.data() + begin, entries.data(), entries.size() * sizeof(E));
  return bytes;
}

class Npy : public test::DataFolderTest {
 protected:
  void write_set() {
    write("set/features.npy", npy<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6}));
    write("set/labels.npy", npy<std::int64_t>("<i8", "(3,)", {7, -1, 7}));
  }
};

// The files are as numpy.save writes them for pandas' to_numpy(), for masks and for small integers.
TEST_F(Npy, ReadsFortranOrderAndEveryType) {
  write_set();
  write("set/features.npy", npy<float>("<f4", "(3, 2)", {1, 3, 5, 2, 4, 6}, "True"));
  for (std::uint32_t row = 0; row < 3; ++row) EXPECT_THAT(row_of(load({.name = "set"}).train, row), ElementsAre(2 * row + 1, 2 * row + 2));
  write("set/features.npy", npy<std::int16_t>("<i2", "(3, 2, 2)", {0, 100, 200, 10, 110, 210, 1, 101, 201, 11, 111, 211}, "True"));
  EXPECT_THAT(row_of(load({.name = "set"}).train, 1), ElementsAre(100, 101, 110, 111));
  write("set/labels.npy", npy<std::uint8_t>("|b1", "(3,)", {1, 0, 1}));
  EXPECT_THAT(load({.name = "set"}).train.label, ElementsAre(1, 0, 1));
  const auto first = [&](const std::string& bytes) {
    write("set/features.npy", bytes);
    return row_of(load({.name = "set"}).train, 0)[0];
  };
  EXPECT_EQ(first(npy<std::int8_t>("|i1", "(3, 1)", {-7, 0, 1})), -7);
  EXPECT_EQ(first(npy<std::uint16_t>("<u2", "(3, 1)", {65535, 0, 1})), 65535);
  EXPECT_EQ(first(npy<std::uint32_t>("<u4", "(3, 1)", {4294967295u, 0, 1})), 4294967295.0);
}

TEST_F(Npy, ReadsRowsAndLabels) {
  write_set();
  for (const char* name : {"set", "set/features.npy"}) {
    const auto data = load({.name = name});
    EXPECT_EQ(data.train.num_rows, 3u);
    EXPECT_THAT(row_of(data.train, 1), ElementsAre(3, 4));
    EXPECT_THAT(data.train.label, ElementsAre(1, 0, 1));
    EXPECT_THAT(data.train.class_names, ElementsAre("-1", "7"));
    EXPECT_FALSE(data.test.has_value());
  }
  write("set/test_features.npy", npy<double>("<f8", "(1, 2)", {0.5, -0.5}));
  write("set/test_labels.npy", npy<std::uint8_t>("|u1", "(1, 1)", {7}));
  EXPECT_THAT(row_of(*load({.name = "set"}).test, 0), ElementsAre(0.5, -0.5));
  EXPECT_THAT(load({.name = "set"}).test->label, ElementsAre(1));
  EXPECT_THAT(load<float>({.name = "set", .rows = 2, .labels = LabelKind::target}).train.target, ElementsAre(7, -1));
}

TEST_F(Npy, BytesOfImagesStayBytes) {
  write("set/features.npy", npy<std::uint8_t>("|u1", "(2, 2, 1, 2)", {0, 51, 102, 255, 1, 2, 3, 4}));
  write("set/labels.npy", npy<std::uint8_t>("|u1", "(2,)", {0, 1}));
  const auto colours = load({.name = "set"});
  EXPECT_TRUE(colours.train.has_pixels());
  EXPECT_THAT(colours.train.shape, ElementsAre(2, 1, 2));
  EXPECT_THAT(row_of(colours.train, 0), ElementsAre(0, 0.2, 0.4, 1));
  write("set/features.npy", npy<std::uint8_t>("|u1", "(2, 2, 2)", {0, 51, 102, 255, 1, 2, 3, 4}));
  EXPECT_THAT(load({.name = "set"}).train.shape, ElementsAre(1, 2, 2));
  write("set/features.npy", npy<float>("<f4", "(2, 2, 2)", {0, 51, 102, 255, 1, 2, 3, 4}));
  EXPECT_THAT(row_of(load({.name = "set"}).train, 0), ElementsAre(0, 51, 102, 255));
  write("set/features.npy", npy<std::uint8_t>("|u1", "(2, 4)", {0, 51, 102, 255, 1, 2, 3, 4}));
  EXPECT_THAT(row_of(load({.name = "set"}).train, 0), ElementsAre(0, 51, 102, 255));
}

// A channel is for images of bytes only; rows of other numbers keep their axes. Channels that come last would be taken for rows of pixels.
TEST_F(Npy, RowsKeepTheirAxes) {
  write("set/labels.npy", npy<std::uint8_t>("|u1", "(2,)", {0, 1}));
  write("set/features.npy", npy<float>("<f4", "(2, 2, 3)", std::vector<float>(12, 0.5f)));
  EXPECT_THAT(load({.name = "set"}).train.shape, ElementsAre(2, 3));
  write("set/features.npy", npy<float>("<f4", "(2, 3, 5, 5)", std::vector<float>(150, 0.5f)));
  EXPECT_THAT(load({.name = "set"}).train.shape, ElementsAre(3, 5, 5));
  const auto refusal = [this] {
    try {
      static_cast<void>(load({.name = "set"}));
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  write("set/features.npy", npy<std::uint8_t>("|u1", "(2, 5, 5, 3)", std::vector<std::uint8_t>(150, 1)));
  EXPECT_THAT(refusal(), HasSubstr("images whose channels come last; save them with the channels first"));
  write("set/features.npy", npy<float>("<f4", "(2, 5, 5, 3)", std::vector<float>(150, 0.5f)));
  EXPECT_THAT(refusal(), HasSubstr("numpy.transpose(features, (0, 3, 1, 2))"));
}

TEST_F(Npy, RefusesDamagedFiles) {
  const auto error_with = [this](const std::string& file, const std::string& bytes) {
    write_set();
    write("set/" + file, bytes);
    return error_of({.name = "set"});
  };
  const std::string good = npy<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(error_with("features.npy", "PK"), StartsWith("set/features.npy: is too short for an array of NumPy"));
  EXPECT_THAT(error_with("features.npy", std::string(40, 'x')), StartsWith("set/features.npy: does not begin as an array"));
  EXPECT_THAT(error_with("features.npy", good.substr(0, 30)), StartsWith("set/features.npy: ends within its header"));
  EXPECT_THAT(error_with("features.npy", good.substr(0, good.size() - 1)),
              StartsWith("set/features.npy: is truncated: 23 bytes after the header, which promises 24"));
  EXPECT_THAT(error_with("features.npy", good + "x"), StartsWith("set/features.npy: is longer than its header says"));
  EXPECT_THAT(error_with("features.npy", npy<float>(">f4", "(3, 2)", {1, 2, 3, 4, 5, 6})), HasSubstr("holds the type >f4;"));
  EXPECT_THAT(error_with("features.npy", npy<float>("<f4", "(3, x)", {1})), HasSubstr("its header has the shape (3,x)"));
  EXPECT_THAT(error_with("features.npy", npy<float>("<f4", "(3, 0)", {})), HasSubstr("its header has the shape (3,0)"));
  EXPECT_THAT(error_with("features.npy", npy<float>("<f4", "(99999999999, 99999999999)", {})), HasSubstr("its header has the shape"));
  EXPECT_THAT(error_with("features.npy", npy<float>("<f4", "()", {1})), HasSubstr("is a single number"));
  EXPECT_THAT(error_with("features.npy", npy<float>("<f4", "(3, 2)", {1, 2, 3, std::numeric_limits<float>::infinity(), 5, 6})),
              HasSubstr("row 1, entry 1 (from 0) is not a finite number"));
  EXPECT_THAT(error_with("labels.npy", npy<float>("<f4", "(2,)", {1, 2})), StartsWith("set/labels.npy: holds 2 labels, but"));
  EXPECT_THAT(error_with("labels.npy", npy<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6})), HasSubstr("has 2 numbers per row"));
  EXPECT_THAT(error_with("labels.npy", npy<float>("<f4", "(3,)", {1, 2, 2.5})),
              HasSubstr("the label 2.5 of row 2 (from 0) is no whole number"));
  EXPECT_THAT(error_with("test_features.npy", npy<float>("<f4", "(1, 2)", {1, 2})),
              StartsWith("set/test_labels.npy: this file of the data set is missing"));
  write("set/test_labels.npy", npy<float>("<f4", "(1,)", {3}));
  EXPECT_THAT(error_of({.name = "set"}), HasSubstr("row 0 (from 0) has the label 3, which the training set does not have"));
  write("set/test_labels.npy", npy<float>("<f4", "(1,)", {7}));
  write("set/test_features.npy", npy<float>("<f4", "(1, 3)", {1, 2, 3}));
  EXPECT_THAT(error_of({.name = "set"}), StartsWith("set/test_features.npy: its rows have another shape or type"));
}

class Ratings : public test::DataFolderTest {};

// User 5 rated items 30 and 20, in that order; user 2 rated 30.
TEST_F(Ratings, OneClientPerUserInTheOrderOfTime) {
  write("a/u.data", "5\t20\t3\t900\n2\t30\t4\t100\n5\t30\t1\t800\n");
  write("b/ratings.dat", "5::20::3::900\n2::30::4::100\n5::30::1::800\n");
  write("c/ratings.csv", "userId,movieId,rating,timestamp\n5,20,3.0,900\n2,30,4.0,100\n5,30,1.0,800\n");
  for (const char* name : {"a", "b", "c", "a/u.data"}) {
    const auto data = load({.name = name, .labels = LabelKind::target});
    EXPECT_EQ(data.train.vocabulary.size, 4u);  // users 2 and 5, items 20 and 30
    EXPECT_THAT(row_of(data.train, 0), ElementsAre(0, 3));
    EXPECT_THAT(row_of(data.train, 1), ElementsAre(1, 3));
    EXPECT_THAT(row_of(data.train, 2), ElementsAre(1, 2));
    EXPECT_THAT(data.train.target, ElementsAre(4, 1, 3));
    EXPECT_THAT(data.train.client_begin, ElementsAre(0, 1, 3));
  }
  const auto classes = load({.name = "a"});
  EXPECT_THAT(classes.train.label, ElementsAre(2, 0, 1));
  EXPECT_EQ(classes.train.num_classes, 3u);
  const auto held_out = load({.name = "a", .test_fraction = 0.5});
  EXPECT_TRUE(held_out.is_held_out);
  EXPECT_THAT(held_out.train.label, ElementsAre(2, 0));
  EXPECT_THAT(held_out.test->label, ElementsAre(1));
  EXPECT_THAT(row_of(*held_out.test, 0), ElementsAre(1, 2));
  EXPECT_THAT(load({.name = "a", .rows = 2}).train.client_begin, ElementsAre(0, 1, 2));
}

TEST_F(Ratings, TheLatestOfEachUserMayBeHeldOut) {
  write("a/u.data", "5\t20\t3\t900\n2\t30\t4\t100\n5\t30\t1\t800\n5\t40\t2\t100\n");
  FileDataOptions options{.name = "a", .labels = LabelKind::target};
  options.formats.ratings.leave_one_out = true;
  const auto data = load(options);
  EXPECT_TRUE(data.is_held_out);
  EXPECT_EQ(data.train.vocabulary.num_users, 2u);
  EXPECT_EQ(data.train.num_items(), 3u);
  EXPECT_THAT(data.train.client_begin, ElementsAre(0, 1, 3));  // user 2 has one rating and keeps it
  EXPECT_THAT(data.train.target, ElementsAre(4, 2, 1));
  ASSERT_TRUE(data.test.has_value());
  EXPECT_THAT(data.test->target, ElementsAre(3));
  EXPECT_THAT(data.test->client_begin, ElementsAre(0, 0, 1));
  write("a/u.data", "5\t20\t3\t900\n2\t30\t4\t100\n");
  EXPECT_THAT(error_of(options), HasSubstr("leave_one_out: no user has two ratings"));
}

TEST_F(Ratings, RefusesDamagedFiles) {
  const auto error_with = [this](const std::string& text) {
    write("a/u.data", text);
    return error_of({.name = "a", .test_fraction = 0.4});
  };
  EXPECT_THAT(error_with("5\t20\t3\n"), StartsWith("a/u.data:1:6: the line has 3 cells; user, item, rating and time are four"));
  EXPECT_THAT(error_with("5\t20\t3\t1\n5\tx\t3\t1\n"), StartsWith("a/u.data:2:3: the item \"x\" is no whole number"));
  EXPECT_THAT(error_with("-5\t20\t3\t1\n"), StartsWith("a/u.data:1:1: the user \"-5\" is no whole number"));
  EXPECT_THAT(error_with("5\t20\tgood\t1\n"), StartsWith("a/u.data:1:6: the rating \"good\" is not a number"));
  EXPECT_THAT(error_with("\n"), StartsWith("a/u.data: has no ratings"));
  EXPECT_THAT(error_with("5\t20\t3\t1\n"), HasSubstr("test_fraction = 0.4 of no user is a whole rating"));
}

}  // namespace
}  // namespace fl
