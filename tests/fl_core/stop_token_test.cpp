// Tests that requests to stop reach their own tokens alone.
#include "fl_core/config/stop_token.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace fl {
namespace {

TEST(StopToken, IsAskedByItsOwnRequestAlone) {
  StopRequest one, other;
  const StopToken of_one = one.token(), copy = of_one, of_other = other.token();
  one.ask();
  EXPECT_TRUE(of_one.is_asked());
  EXPECT_TRUE(copy.is_asked());
  EXPECT_FALSE(of_other.is_asked());
  EXPECT_FALSE(StopToken().is_asked()) << "nobody made it";
  one.take_back();
  EXPECT_FALSE(copy.is_asked());
}

TEST(StopToken, OutlivesItsRequest) {
  std::optional<StopRequest> request(std::in_place);
  const StopToken token = request->token();
  request->ask();
  request.reset();
  EXPECT_TRUE(token.is_asked());
}

}  // namespace
}  // namespace fl
