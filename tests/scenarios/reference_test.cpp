#include "scenarios/file/reference.hpp"

#include <gtest/gtest.h>

#include "tests/scenarios/test_parts.hpp"

namespace fl::test {
namespace {

using ReferenceTest = ScenarioTest;

TEST_F(ReferenceTest, ListsSectionsPartsAndKeys) {
  const std::string text = scenario_reference();
  for (const char* line : {
           "## Top of the file\n",
           "| `rounds` | integer | required | >= 1, <= 268435455 |  | the largest number of rounds that a run plays |\n",
           "| `precision` | one of `float32`, `float64` | `\"float32\"` |",
           "| `bits` | number | unset | > 0 | bits |",
           "## `[compressor.up]`\n",
           "### `kind = \"test_odd\"`\n\nfor tests\n\nSource: nobody\n",
           "| `low` | number | required |  |  | lower end |\n",
           "| `weights` | list of numbers | `[0.5, 1.0]` | > 0 | kg | positive numbers |\n",
           "| any \\| text |\n",
           "| `optimum` | true, false or path | `true` |",
           "## `[sweep]`\n",
       })
    EXPECT_TRUE(contains(text, line));
}

TEST_F(ReferenceTest, NamesEveryRegisteredPart) {
  const std::string text = scenario_reference();
  for (const char* role : {"compressor", "feedback", "local_update", "local_optimizer", "participation", "postprocessor", "aggregation",
                           "delivery", "devices", "network", "availability", "server_optimizer", "partitioner", "model", "data"})
    for (const std::string& name : Registry::instance().names(role)) EXPECT_TRUE(contains(text, "### `kind = \"" + name + "\"`\n"));
}

}  // namespace
}  // namespace fl::test
