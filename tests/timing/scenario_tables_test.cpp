// Tests the tables [devices], [network] and [availability] of scenarios.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl_core/config/error.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

test::ScenarioText with_tables(const std::string& tables) {
  test::ScenarioText text = test::quadratics();
  text.local = "kind = 'gradient'\nlearning_rate = 0.1";
  text.more = tables;
  return text;
}
Cell cell_with(const std::string& tables) { return parse_cells(with_tables(tables).str(), "test.toml").at(0); }
std::string refusal_with(const std::string& tables) {
  try {
    static_cast<void>(cell_with(tables));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(TimingTables, DefaultsAreNotWritten) {
  const Cell without = cell_with(""),
             with = cell_with("[devices]\nkind = 'none'\n[network]\nkind = 'none'\n[availability]\nkind = 'always'\n");
  EXPECT_EQ(without.hash, with.hash);
  for (const char* table : {"devices", "network", "availability"}) EXPECT_THAT(without.resolved_toml, Not(HasSubstr(table)));
  EXPECT_NE(without.hash, cell_with("[devices]\nkind = 'preset'\n").hash);
}

TEST(TimingTables, TextsAreResolvedToNumbers) {
  const Cell texts = cell_with("[network]\nkind = 'constant'\ndown = '100M'\nup = '10M'\nlatency = '50ms'\n"),
             numbers = cell_with("[network]\nkind = 'constant'\ndown = 100e6\nup = 10_000_000\nlatency = 0.05\n");
  EXPECT_EQ(texts.hash, numbers.hash);
  EXPECT_THAT(texts.resolved_toml, AllOf(HasSubstr("down = 1e+08\n"), HasSubstr("latency = 0.05\n")));
}

TEST(TimingTables, ListsOfTablesAreReadBack) {
  const std::string
      inline_tables =
          "[network]\nkind = 'tiers'\ntiers = [{ preset = 'wifi', share = 0.5 }, { name = 'a', share = 0.5, down = '1M', up = 2 }]\n",
      array =
          "[network]\nkind = 'tiers'\n[[network.tiers]]\npreset = 'wifi'\nshare = 0.5\n[[network.tiers]]\nname = 'a'\nshare = 0.5\ndown = "
          "1e6\nup = 2.0\n";
  const Cell once = cell_with(inline_tables);
  EXPECT_EQ(once.hash, cell_with(array).hash);
  EXPECT_EQ(parse_cells(once.resolved_toml, "resolved.toml").at(0).hash, once.hash);
  EXPECT_THAT(once.resolved_toml, HasSubstr("{ name = \"a\", share = 0.5, down = 1e+06, up = 2.0"));
}

TEST(TimingTables, ErrorsNamePlaceKeyAndTheWayOut) {
  const auto network = [](const std::string& lines) { return refusal_with("[network]\n" + lines + "\n"); };
  EXPECT_THAT(network("kind = 'constant'\ndown = 0\nup = 1"),
              AllOf(HasSubstr("test.toml:"), HasSubstr("network.down: must be > 0"), HasSubstr("is 0")));
  EXPECT_THAT(network("kind = 'constant'\ndown = -5\nup = 1"), HasSubstr("network.down: must be > 0"));
  EXPECT_THAT(network("kind = 'constant'\ndown = inf\nup = 1"), HasSubstr("network.down"));
  EXPECT_THAT(network("kind = 'constant'\ndown = nan\nup = 1"), HasSubstr("network.down: must be finite"));
  EXPECT_THAT(network("kind = 'constant'\ndown = '0M'\nup = 1"), HasSubstr("network.down: must be > 0"));
  EXPECT_THAT(network("kind = 'constant'\ndown = '5 parsecs'\nup = 1"),
              HasSubstr("network.down: must be a number, or a text of a number and a unit (K, M, G, T), is \"5 parsecs\""));
  EXPECT_THAT(network("kind = 'constant'\ndown = 'infM'\nup = 1"), HasSubstr("network.down: must be a number, or"));
  EXPECT_THAT(network("kind = 'constant'\ndown = 5"), AllOf(HasSubstr("network.up"), HasSubstr("missing")));
  EXPECT_THAT(network("kind = 'preset'\npreset = 'wfii'"), HasSubstr("did you mean \"wifi\"?"));
  EXPECT_THAT(network("kind = 'tiers'\ntiers = [{ preset = 'wfii', share = 1.0 }]"),
              AllOf(HasSubstr("network.tiers: element 1 its preset must be one of"), HasSubstr("did you mean \"wifi\"?")));
  EXPECT_THAT(network("kind = 'tiers'\ntiers = [{ preset = 'wifi', share = 0.4 }, { preset = '4g', share = 0.5 }]"),
              HasSubstr("network.tiers: have shares that sum to 0.9; they must sum to 1"));
  EXPECT_THAT(network("kind = 'tiers'\ntiers = [{ preset = 'wifi', share = 1.4 }]"),
              HasSubstr("element 1 its share must be > 0, <= 1, is 1.4"));
  EXPECT_THAT(network("kind = 'lognormal'\ndown = 1\nup = 1\ncorrelation = 1.5"),
              HasSubstr("network.correlation: must be >= -1, <= 1, is 1.5"));
  EXPECT_THAT(network("kind = 'lognormal'\ndown = 1\nup = 1\ncorrelation = 0.5"), HasSubstr("network.correlation: needs follows"));
  EXPECT_THAT(network("kind = 'constant'\nbandwidth = '10M'"), HasSubstr("up"));
}

}  // namespace
}  // namespace fl
