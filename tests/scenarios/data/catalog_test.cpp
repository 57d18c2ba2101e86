#include "scenarios/data/catalog.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "fl_core/config/error.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/embedded.hpp"
#include "scenarios/data/load.hpp"
#include "scenarios/data/sha256.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/test_data.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

std::string sha256_of_text(const std::string& text) { return sha256_of(std::as_bytes(std::span<const char>(text))); }

// FIPS 180-4 examples, and lengths on both sides of the padding's borders against the sum of their own pieces.
TEST(Sha256, AgreesWithTheStandard) {
  EXPECT_EQ(sha256_of_text(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of_text("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of_text("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_of_text(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  for (const std::size_t size : {55u, 56u, 63u, 64u, 65u, 119u, 120u}) {
    const std::string text(size, 'x');
    Sha256 pieces;
    for (const char& c : text) pieces.add(std::as_bytes(std::span<const char>(&c, 1)));
    EXPECT_EQ(pieces.finish(), sha256_of_text(text)) << size;
  }
}

TEST(Embedded, IsTheKnownFile) {
  EXPECT_EQ(sha256_of(embedded_mushrooms()), "c6170f9d3de835051acced088f85c13c96d23038d950b31684d793d5c7be21bd");
  EXPECT_EQ(sha256_of_text(unpack_data(embedded_mushrooms(), "mushrooms")), find_data_info("mushrooms")->files[0].sha256);
}

// An own folder, no FEDBITS_DATA, and a working directory without ./data.
class Catalog : public ::testing::Test {
 protected:
  Catalog() : root_(fs::temp_directory_path() / ("fl_catalog_" + std::to_string(::getpid()))), before_(fs::current_path()) {
    for (const char* folder : {"a/libsvm", "b", "work"}) fs::create_directories(root_ / folder);
    fs::current_path(root_ / "work");
    if (const char* set = std::getenv("FEDBITS_DATA")) environment_ = set;
    ::unsetenv("FEDBITS_DATA");
  }
  ~Catalog() override {
    fs::current_path(before_);
    fs::remove_all(root_);
    if (!environment_.empty()) ::setenv("FEDBITS_DATA", environment_.c_str(), 1);
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(root_ / name) << text; }
  static std::string config_error(const DataCatalog& catalog, const std::string& name) {
    try {
      (void)catalog.find(name);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  }
  fs::path root_, before_;
  std::string environment_;
};

TEST_F(Catalog, SearchesInItsOrder) {
  fs::create_directories(root_ / "work/data");
  for (const char* file : {"a/libsvm/mushrooms", "b/mushrooms", "work/data/mushrooms"}) write(file, "1 1:1\n2 1:1\n");
  ::setenv("FEDBITS_DATA", (root_ / "b").c_str(), 1);
  EXPECT_EQ(DataCatalog(root_ / "a").find("mushrooms").file, root_ / "a/libsvm/mushrooms");
  EXPECT_EQ(DataCatalog(root_ / "a").find("libsvm/mushrooms").file, root_ / "a/libsvm/mushrooms");
  EXPECT_EQ(DataCatalog().find("mushrooms").file, root_ / "b/mushrooms");
  ::unsetenv("FEDBITS_DATA");
  EXPECT_EQ(DataCatalog().find("mushrooms").file, "data/mushrooms");
  fs::remove_all(root_ / "work/data");
  const DataLocation inside = DataCatalog().find("mushrooms");
  EXPECT_TRUE(inside.file.empty());
  EXPECT_EQ(inside.embedded.data(), embedded_mushrooms().data());
  EXPECT_FALSE(DataCatalog().find_test(inside).has_value());
}

TEST_F(Catalog, SaysWhereItLookedAndWhatIsNear) {
  const std::string nowhere = config_error(DataCatalog(), "a9a");
  EXPECT_NE(nowhere.find("--data"), std::string::npos) << nowhere;
  const std::string near = config_error(DataCatalog(root_ / "a"), "mushroms");
  EXPECT_NE(near.find((root_ / "a").string()), std::string::npos) << near;
  EXPECT_NE(near.find("did you mean \"mushrooms\""), std::string::npos) << near;
  EXPECT_NE(config_error(DataCatalog(), "./none").find("no such file"), std::string::npos);
  EXPECT_NE(config_error(DataCatalog(), "").find("empty"), std::string::npos);
  EXPECT_THROW(DataCatalog(root_ / "none"), ConfigError);
  ::setenv("FEDBITS_DATA", "/nonexistent/folder", 1);
  EXPECT_THROW(DataCatalog(), ConfigError);
}

TEST_F(Catalog, VerifiesWhatIsThere) {
  write("a/libsvm/australian", "1 1:1\n2 1:1\n");
  const DataCatalog catalog(root_ / "a");
  for (const DataListing& listing : catalog.list()) {
    const bool there = listing.info.name == "libsvm/australian" || listing.info.name == "libsvm/mushrooms";
    EXPECT_EQ(listing.state, there ? DataState::present : DataState::missing) << listing.info.name;
  }
  for (const DataListing& listing : catalog.verify()) {
    if (listing.info.name == "libsvm/australian")
      EXPECT_EQ(listing.state, DataState::differs);
    else if (listing.info.name == "libsvm/mushrooms")
      EXPECT_EQ(listing.state, DataState::matches);
    else
      EXPECT_EQ(listing.state, DataState::missing) << listing.info.name;
  }
}

TEST_F(Catalog, PicksUpTheTestSet) {
  write("a/mine", "1 1:1 3:1\n2 2:1\n");
  write("a/mine.t", "2 1:1\n");
  write("a/other", "1 2:1\n");
  const DataCatalog catalog(root_ / "a");
  const auto found = load_data<float>({.name = "mine"}, catalog);
  ASSERT_TRUE(found.test.has_value());
  EXPECT_EQ(found.test->num_features, 3u);
  EXPECT_EQ(found.test->label, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(found.test_where, (root_ / "a/mine.t").string());
  EXPECT_FALSE(load_data<float>({.name = "mine", .test = "none"}, catalog).test.has_value());
  EXPECT_EQ(load_data<float>({.name = "mine", .test = "other"}, catalog).test->label, (std::vector<std::int32_t>{0}));
  EXPECT_FALSE(load_data<float>({.name = "other"}, catalog).test.has_value());
  EXPECT_THROW((void)load_data<float>({.name = "mine", .test = "none", .features = 2}, catalog), DataError);
  const auto wide = load_data<double>({.name = "mine", .rows = 1, .features = 9, .storage = Storage::sparse}, catalog);
  EXPECT_EQ(wide.train.num_rows, 1u);
  EXPECT_EQ(wide.train.num_features, 9u);
  EXPECT_TRUE(wide.train.is_sparse);
}

TEST(CatalogOnRealData, MatchesEveryChecksum) {
  FL_ONLY_ARITHMETIC();
  FL_NEED_DATA(path, "libsvm");
  for (const DataListing& listing : DataCatalog(path.parent_path()).verify()) {
    // Not at hand, or a copy whose rows are in another order.
    if (listing.info.name.starts_with("cifar") || listing.info.name == "ml-100k") continue;
    EXPECT_EQ(listing.state, DataState::matches) << listing.info.name << " " << listing.found;
  }
}

TEST(CatalogOnRealData, LoadsA9aWithItsTestSet) {
  FL_NEED_DATA(path, "libsvm/a9a");
  const DataCatalog catalog(path.parent_path().parent_path());
  const auto data = load_data<double>({.name = "a9a", .rows = 32000}, catalog);
  EXPECT_EQ(data.train.num_rows, 32000u);
  EXPECT_EQ(data.train.num_features, 123u);
  ASSERT_TRUE(data.test.has_value());
  EXPECT_EQ(data.test->num_rows, 16281u);
  EXPECT_EQ(data.test->num_features, 123u);
  EXPECT_EQ(data.train.class_names, (std::vector<std::string>{"-1", "1"}));
}

TEST(CatalogOnRealData, LoadsTheEmbeddedSet) {
  const auto data = read_data<float>({"mushrooms", {}, embedded_mushrooms()}, {});
  EXPECT_EQ(data.num_rows, 8124u);
  EXPECT_EQ(data.num_features, 112u);
  EXPECT_EQ(std::count(data.label.begin(), data.label.end(), 1), 4208);  // edible
}

}  // namespace
}  // namespace fl
