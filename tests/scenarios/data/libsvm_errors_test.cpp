// Tests the loader's errors for invalid files.
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "fl_core/config/error.hpp"
#include "fl_core/random/random.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/libsvm.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

std::string error_of(const std::string& text, const LibsvmFormat& format = {}) {
  try {
    (void)parse_libsvm<float>(text, "f", format);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

struct Malformed {
  const char* what;
  std::string text;
  std::string begins;    // place
  std::string contains;  // reason
};
class MalformedText : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedText, IsNamedByLineAndColumn) {
  const Malformed& bad = GetParam();
  const std::string error = error_of(bad.text);
  EXPECT_TRUE(error.starts_with(bad.begins)) << error;
  EXPECT_NE(error.find(bad.contains), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(
    All, MalformedText,
    ::testing::Values(
        Malformed{"label", "1 1:1\nx 1:1\n", "f:2:1: ", "label was expected, got \"x\""},
        Malformed{"two_labels", "1,2 1:1\n", "f:1:1: ", "one number followed by a blank, got \"1,2\""},
        Malformed{"no_label", "1:1 2:1\n", "f:1:1: ", "label"}, Malformed{"fraction", "0.5 1:1\n", "f:1:1: ", "labels = \"target\""},
        Malformed{"nan_label", "nan 1:1\n", "f:1:1: ", "finite"}, Malformed{"no_colon", "1 1:1 7\n", "f:1:8: ", "colon"},
        Malformed{"equals_sign", "1 1=1\n", "f:1:4: ", "colon"}, Malformed{"zero_index", "1 0:1\n", "f:1:3: ", "start at 1"},
        Malformed{"descending", "1 5:1 3:1\n", "f:1:7: ", "3 follows 5"}, Malformed{"twice", "1 5:1 5:1\n", "f:1:7: ", "twice"},
        Malformed{"negative_index", "1 -5:1\n", "f:1:3: ", "index was expected"},
        Malformed{"huge_index", "1 2147483649:1\n", "f:1:3: ", "above 2^31"},
        Malformed{"endless_index", "1 99999999999999999999999999:1\n", "f:1:3: ", "above 2^31"},
        Malformed{"nan", "1 1:1\n1 1:nan\n", "f:2:5: ", "finite"}, Malformed{"inf", "1 1:-inf\n", "f:1:5: ", "finite"},
        Malformed{"huge_value", "1 1:1e999\n", "f:1:5: ", "float64"}, Malformed{"not_float32", "1 1:1e39\n", "f:1:5: ", "float32"},
        Malformed{"no_value", "1 1: 2:1\n", "f:1:5: ", "value was expected"},
        Malformed{"cut_off", "1 1:1\n1 3:", "f:2:5: ", "value was expected"}, Malformed{"word", "1 1:abc\n", "f:1:5: ", "\"abc\""},
        Malformed{"tail", "1 1:2x\n", "f:1:5: ", "\"2x\""}, Malformed{"two_signs", "1 1:+-2\n", "f:1:5: ", "\"+-2\""},
        Malformed{"sign_only", "1 1:-\n", "f:1:5: ", "\"-\""}, Malformed{"point_only", "1 1:.\n", "f:1:5: ", "\".\""},
        Malformed{"query", "1 qid:3 1:1\n", "f:1:3: ", "index was expected"},
        Malformed{"binary",
                  std::string("\x7f"
                              "ELF\0\0",
                              6),
                  "f:1:1: ", "\\x7fELF\\x00"},
        Malformed{"empty", "", "f: ", "not one row"}, Malformed{"blank", "\n \n#x\n", "f: ", "not one row"},
        Malformed{"no_features", "1\n2\n", "f: ", "no row has a feature"}),
    [](const auto& test) { return test.param.what; });

TEST(MalformedTestSet, NamesTheLineThatDoesNotFit) {
  const auto train = parse_libsvm<float>("1 1:1 3:2\n2 2:1\n", "train");
  EXPECT_TRUE(error_of("1 1:1\n2 4:1\n", format_like(train)).starts_with("f:2:3: the feature index 4 is beyond the 3 features"));
  EXPECT_TRUE(error_of("1 1:1\n# c\n7 1:1\n", format_like(train)).starts_with("f:3:1: the label 7 is not one of"));
}

TEST(DenseStorage, IsRefusedBeforeItIsAllocated) {
  std::string text = "1 2147483648:1\n";
  for (int i = 0; i < 10000; ++i) text += "2\n";
  EXPECT_THROW((void)parse_libsvm<double>(text, "f", {.storage = Storage::dense}), ConfigError);  // 160 TiB
  EXPECT_TRUE(parse_libsvm<double>(text, "f").is_sparse);
}

// Text that is damaged at random is read or refused with a place; never anything else.
TEST(RandomDamage, IsReadOrRefused) {
  const std::string good = "1 1:0.5 7:1e-3 30:-2\n-1 2:1 3:1\n# c\n+1 5:12345.678\n-1\n";
  constexpr char kLetters[] = "0123456789:.+-eE# \n\t\r,naif\0\xff";
  const std::string letters(kLetters, sizeof(kLetters) - 1);
  RandomSequence random(1, Purpose::synthetic_data);
  int num_refused = 0, num_read = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text = good;
    for (std::uint64_t i = random.below(4) + 1; i > 0; --i) {
      const std::size_t at = random.below(text.size());
      const auto kind = random.below(4);
      if (kind == 0) text.resize(at + 1);
      if (kind == 1) text.erase(at, 1);
      if (kind == 2) text[at] = letters[random.below(letters.size())];
      if (kind == 3) text.insert(at, 1, letters[random.below(letters.size())]);
      if (text.empty()) text = "\n";
    }
    try {
      const auto data = parse_libsvm<float>(text, "f", {.storage = Storage::sparse});
      ASSERT_EQ(data.sparse.row_begin.size(), data.num_rows + 1);
      ASSERT_EQ(data.sparse.row_begin[data.num_rows], data.sparse.column.size());
      for (const std::uint32_t column : data.sparse.column) ASSERT_LT(column, data.num_features);
      ++num_read;
    } catch (const DataError& error) {
      ASSERT_TRUE(std::string(error.what()).starts_with("f:")) << error.what();
      ++num_refused;
    }
  }
  EXPECT_GT(num_refused, 1000);
  EXPECT_GT(num_read, 1000);
}

class Files : public ::testing::Test {
 protected:
  Files() : folder_(fs::temp_directory_path() / ("fl_libsvm_" + std::to_string(::getpid()))) { fs::create_directories(folder_); }
  ~Files() override { fs::remove_all(folder_); }
  fs::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  static std::string read_error(const fs::path& file) {
    try {
      (void)read_libsvm<double>(file, "x");
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  }
  static std::string gzip(const std::string& text) {
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(deflateBound(&stream, text.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
  }
  fs::path folder_;
};

TEST_F(Files, AreReadPlainAndPacked) {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += i % 2 ? "1 1:1 2:0.25\n" : "0 2:3\n";  // more than one step of the unpacker
  const auto plain = read_libsvm<double>(write("plain", text), "x");
  const auto packed = read_libsvm<double>(write("packed", gzip(text)), "x");
  const std::size_t half = text.size() / 2;
  const auto members = read_libsvm<double>(write("members", gzip(text.substr(0, half)) + gzip(text.substr(half))), "x");
  EXPECT_EQ(plain.num_rows, 200000u);
  for (const auto* other : {&packed, &members}) {
    EXPECT_EQ(other->num_rows, plain.num_rows);
    EXPECT_EQ(other->label, plain.label);
    EXPECT_TRUE(std::equal(plain.dense.begin(), plain.dense.end(), other->dense.begin(), other->dense.end()));
  }
}

TEST_F(Files, ThatAreDamagedAreNamed) {
  const std::string packed = gzip("1 1:1\n0 1:2\n");
  const auto expect = [&](const fs::path& file, const std::string& reason) {
    const std::string error = read_error(file);
    EXPECT_TRUE(error.starts_with(file.string())) << error;
    EXPECT_NE(error.find(reason), std::string::npos) << error;
  };
  for (std::size_t kept = 2; kept < packed.size(); ++kept) expect(write("cut", packed.substr(0, kept)), "gzip stream");
  std::string changed = packed;
  changed[packed.size() - 6] = static_cast<char>(changed[packed.size() - 6] ^ 1);
  expect(write("changed", changed), "damaged");
  expect(write("tail", packed + "tail"), "4 bytes follow");
  expect(write("empty", ""), "empty");
  expect(folder_ / "missing", "cannot be opened");
  expect(folder_, "is a folder");
}

}  // namespace
}  // namespace fl
