// Tests every registered part on every promise of its role: a new compressor, model or partitioner is tested automatically.
#include <gtest/gtest.h>

#include <algorithm>

#include "checks/check.hpp"
#include "fl_core/config/registry.hpp"
#include "tests/support/sanitized.hpp"

namespace fl::checks {
namespace {

struct Task {
  std::string role, part;
  Check check;
  friend void PrintTo(const Task& task, std::ostream* out) { *out << task.role << " " << task.part << ", " << task.check.name; }
};

// Networks of a million parameters have no layer that smaller ones lack.
bool takes_too_long(const std::string& part) {
  return test::kSanitized && (part == "cnn_mcmahan" || part == "resnet18" || part == "char_lstm");
}

std::vector<Task> all_tasks() {
  std::vector<Task> tasks;
  for (const std::string role : {"availability", "compressor", "delivery", "devices", "local_optimizer", "measure", "model", "network",
                                 "partitioner", "postprocessor"})
    for (const std::string& part : Registry::instance().names(role))
      for (const Check& check : checks_of(role))
        if (!takes_too_long(part)) tasks.push_back({role, part, check});
  return tasks;
}

class EveryPart : public testing::TestWithParam<Task> {};
INSTANTIATE_TEST_SUITE_P(Registered, EveryPart, testing::ValuesIn(all_tasks()), [](const auto& instance) {
  return instance.param.role + "_" + instance.param.part + "_" + instance.param.check.name;
});

TEST_P(EveryPart, KeepsItsPromise) {
  if (GetParam().check.name == std::string("expectations")) FL_ONLY_ARITHMETIC();  // thousands of draws
  Findings findings;
  GetParam().check.run(GetParam().part, findings);
  EXPECT_EQ(findings.count(), 0u) << GetParam().check.promise;
  for (const std::string& text : findings.texts()) ADD_FAILURE() << text;
}

TEST(Checks, AreThereForTheRolesThatHaveThemAlone) {
  EXPECT_EQ(checks_of("compressor").size(), compressor_checks().size() + contract_checks().size());
  EXPECT_FALSE(checks_of("model").empty());
  EXPECT_FALSE(checks_of("partitioner").empty());
  EXPECT_FALSE(checks_of("delivery").empty());
  for (const std::string role : {"availability", "devices", "network"}) EXPECT_FALSE(checks_of(role).empty()) << role;
  EXPECT_FALSE(checks_of("measure").empty());
  EXPECT_FALSE(checks_of("postprocessor").empty());
  EXPECT_FALSE(checks_of("local_optimizer").empty());
  EXPECT_TRUE(checks_of("feedback").empty());
  for (const std::string role : {"availability", "compressor", "delivery", "devices", "measure", "model", "network", "partitioner"})
    EXPECT_GE(Registry::instance().names(role).size(), 3u) << role;
}

}  // namespace
}  // namespace fl::checks
