#include "fl_core/config/registry.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "fl_core/config/default_options.hpp"

namespace fl {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::StartsWith;

constexpr const char* kRole = "layer";  // which has other parts, too

template <class T>
class Figure {
 public:
  virtual ~Figure() = default;
  [[nodiscard]] virtual T area() const = 0;
};

struct SquareOptions {
  double side = 2;
};
void describe(Schema& s, SquareOptions& o) { s.field("side", o.side, "length").above(0); }

template <class T>
class Square final : public Figure<T> {
 public:
  explicit Square(const SquareOptions& o) : side_(static_cast<T>(o.side)) {}
  [[nodiscard]] T area() const override { return side_ * side_; }

 private:
  T side_;
};
FL_REGISTER_PART(Figure, Square, SquareOptions, (PartInfo{kRole, "square", "four equal sides", "Euclid"}));

std::string error_of(const std::string& role, const std::string& name) {
  try {
    static_cast<void>(Registry::instance().info(role, name));
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(Registry, MakesPartsFromTheirOptions) {
  const Options options = Options::of<SquareOptions>({.side = 3});
  EXPECT_EQ(make_part<Figure<float>>(kRole, "square", options, kThisDevice, Precision::float32)->area(), 9.0f);
  EXPECT_EQ(make_part<Figure<double>>(kRole, "square", options, kThisDevice, Precision::float64)->area(), 9.0);
}

TEST(Registry, DescribesPartsByRoleAndName) {
  auto& r = Registry::instance();
  r.describe({kRole, "circle", "round", ""}, Options::of<NoOptions>());
  EXPECT_THAT(r.names(kRole), IsSupersetOf({"circle", "square"}));
  EXPECT_EQ(r.info(kRole, "square").source, "Euclid");
  EXPECT_EQ(r.default_options(kRole, "square").as<SquareOptions>().side, 2);
  EXPECT_TRUE(r.contains(kRole, "circle"));
  EXPECT_FALSE(r.contains(kRole, "circle", Device::cpu, Precision::float32));
  EXPECT_TRUE(r.contains(kRole, "square", kThisDevice, Precision::float64));
  EXPECT_FALSE(r.contains("no_such_role", "square"));
  EXPECT_TRUE(r.names("no_such_role").empty());
}

TEST(Registry, TheSecondDeviceSharesTheDescription) {
  auto& r = Registry::instance();
  r.describe({kRole, "square", "another text", ""}, Options::of<NoOptions>());
  EXPECT_EQ(r.info(kRole, "square").summary, "four equal sides");
}

TEST(Registry, UnknownNamesComeWithTheNearestAndTheList) {
  Registry::instance().describe({kRole, "circle", "round", ""}, Options::of<NoOptions>());
  EXPECT_THAT(error_of(kRole, "sqaure"), StartsWith("unknown layer \"sqaure\"; did you mean \"square\"? known: "));
  EXPECT_THAT(error_of(kRole, "dodecahedron"),
              StartsWith("unknown layer \"dodecahedron\"; a part of your own needs --plugin FILE.so; known: "));
  EXPECT_THAT(error_of("lyer", "square"), StartsWith("unknown role \"lyer\"; did you mean \"layer\"? known: "));
  EXPECT_THROW(static_cast<void>(Registry::instance().default_options(kRole, "x")), ConfigError);
}

TEST(Registry, AMissingDeviceSaysWhereThePartExists) {
  try {
    static_cast<void>(Registry::instance().factory(kRole, "square", Device::cuda, Precision::float32));
    FAIL() << "there is no square for cuda";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "layer \"square\" does not exist for cuda float32; it exists for: cpu float32, cpu float64");
  }
}

// Nothing could ever choose such a part.
TEST(Registry, ARoleThatDoesNotExistIsRefusedWithThoseThatDo) {
  const auto refused = [](const auto& registers) -> std::string {
    try {
      registers();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  Registry& r = Registry::instance();
  EXPECT_EQ(refused([&] {
              r.describe({"compresor", "circle", "round", ""}, Options::of<NoOptions>());
            }),
            "part \"circle\": unknown role \"compresor\"; did you mean \"compressor\"? known: aggregation, asynchronous, availability, "
            "compressor, data, "
            "delivery, devices, feedback, layer, local_optimizer, local_update, measure, model, network, participation, partitioner, "
            "postprocessor, server_optimizer");
  EXPECT_THAT(refused([&] { r.add("shape", "circle", kThisDevice, Precision::float32, std::any(1)); }),
              HasSubstr("unknown role \"shape\"; known: aggregation, asynchronous, availability, compressor, "));
  EXPECT_TRUE(r.names("compresor").empty());
}

// As when a class of a part is defined in Python while a study runs in another thread.
TEST(Registry, DefaultsMayBeSetWhileOthersLookUp) {
  Registry& r = Registry::instance();
  r.describe({kRole, "strip", "a long rectangle", ""}, Options::of<SquareOptions>());
  std::atomic<bool> is_over = false;
  std::atomic<int> looks = 0, torn = 0;
  std::thread reader([&] {
    while (!is_over) {
      const double side = r.default_options(kRole, "strip").as<SquareOptions>().side;
      if (side != 2 && side != 5 && side != 7) ++torn;
      ++looks;
    }
  });
  for (int i = 0; looks < 100000; ++i) set_default_options(kRole, "strip", Options::of<SquareOptions>({.side = i % 2 == 0 ? 5.0 : 7.0}));
  is_over = true;
  reader.join();
  EXPECT_EQ(torn, 0);
}

TEST(Registry, TwoPartsOfOneNameAreRefused) {
  EXPECT_THROW(Registry::instance().add(kRole, "square", kThisDevice, Precision::float32, std::any(1)), Error);
}

}  // namespace
}  // namespace fl
