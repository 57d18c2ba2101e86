// Tests the facts about compressors and feedbacks that `fedbits list` determines by querying them.
#include "scenarios/file/part_facts.hpp"

#include <gmock/gmock.h>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/differences.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Matcher;
using testing::Not;
using testing::StartsWith;

// Without those that other tests of this program register.
std::vector<std::string> built_in_compressors() {
  std::vector<std::string> names = Registry::instance().names("compressor");
  std::erase_if(names, [](const std::string& name) { return name.starts_with("test_"); });
  return names;
}

TEST(PartFacts, CompressorsOfAThousandParameters) {
  EXPECT_EQ(promise_of_compressor("top_k"), "contraction, delta = 0.01");
  EXPECT_EQ(promise_of_compressor("random_k"), "contraction, delta = 0.01 in expectation");
  EXPECT_THAT(promise_of_compressor("hard_threshold"), StartsWith("absolute, kappa = 0.3162"));  // sqrt(1000) 0.01
  EXPECT_THAT(promise_of_compressor("powersgd"), HasSubstr("linear"));
  for (const std::string& name : built_in_compressors()) EXPECT_THAT(promise_of_compressor(name), Not(IsEmpty())) << name;
}

// identity: 8 bits of header and 1,000 floats.
TEST(PartFacts, MessagesOfAThousandNumbers) {
  EXPECT_EQ(message_of_compressor("identity"), "raw values, 32008 bits");
  EXPECT_THAT(message_of_compressor("top_k"), StartsWith("positions and raw values, "));
  EXPECT_THAT(message_of_compressor("ef_sign"), StartsWith("levels of 1 bit, 10"));
  EXPECT_THAT(message_of_compressor("powersgd"), HasSubstr(", then raw values, "));
  for (const std::string& name : built_in_compressors()) EXPECT_THAT(message_of_compressor(name), HasSubstr(" bits")) << name;
}

TEST(PartFacts, FeedbacksSayWhatTheyWorkWith) {
  EXPECT_THAT(needs_of_feedback("ef14"), Contains("operators: contraction, absolute, without a promise; also in phases"));
  EXPECT_THAT(needs_of_feedback("diana"), Contains("operators: unbiased"));
  EXPECT_THAT(needs_of_feedback("marina"), Contains("participation: every client in every round"));
  EXPECT_THAT(needs_of_feedback("scaffold"), Contains("local updates: scaffold"));
  EXPECT_THAT(needs_of_feedback("ec_diana"), Contains(StartsWith("operators of shift: unbiased")));
  EXPECT_THAT(needs_of_feedback("ef21_p"), Contains("downlink: a compressor"));
  EXPECT_THAT(needs_of_feedback("ec_gd_star"), Contains("local updates: gradient with subtract = \"optimum\""));
  EXPECT_THAT(needs_of_feedback("lag"), Contains("server: sgd without momentum, weight decay and look-ahead"));
  for (const std::string& name : Registry::instance().names("feedback")) {
    EXPECT_THAT(needs_of_feedback(name), Not(IsEmpty())) << name;
    Options options = Registry::instance().default_options("feedback", name);
    const auto part = make_part<Feedback<double>>("feedback", name, options, Device::cpu, Precision::float64);
    EXPECT_THAT(needs_of_feedback(name), part->needs().plain_server ? Matcher<std::vector<std::string>>(Contains(StartsWith("server:")))
                                                                    : Not(Contains(StartsWith("server:"))))
        << name;
  }
}

// These parts do not do what their publication describes, and others that say so do it in the same form.
TEST(PartFacts, PartsThatDifferFromTheirSourceSaySo) {
  std::vector<std::string> differing;
  for (const std::string& role : Registry::instance().roles())
    for (const std::string& name : Registry::instance().names(role))
      if (const std::string text = difference_of(role, name); !text.empty()) {
        differing.push_back(role + " " + name);
        EXPECT_THAT(text, HasSubstr("; here ")) << "it says what the source does, and what is done here";
        EXPECT_FALSE(text.ends_with('.'));
      }
  EXPECT_THAT(differing, IsSupersetOf({"compressor accordion", "compressor adaqs", "compressor gradzip", "compressor lgreco",
                                       "compressor sketched_sgd", "compressor variance_based", "feedback power_ef"}));
}

TEST(PartFacts, APartHasOneTextOfHowItDiffers) {
  EXPECT_TRUE(add_difference({"feedback", "power_ef", difference_of("feedback", "power_ef")})) << "a file that is compiled for two devices";
  EXPECT_THROW(add_difference({"feedback", "power_ef", "another"}), Error);
}

}  // namespace
}  // namespace fl
