// Rounds wait for their messages.
#include "server/async_rule.hpp"

namespace fl {
namespace {

class NotAsynchronous final : public AsyncRule {
 public:
  explicit NotAsynchronous(const NoOptions&) {}
  [[nodiscard]] bool is_asynchronous() const override { return false; }
  [[nodiscard]] std::size_t buffer() const override { return 1; }
  [[nodiscard]] double weight(std::uint32_t) const override { return 1; }
  [[nodiscard]] bool ignores_age() const override { return true; }
};

FL_REGISTER_ASYNCHRONOUS(NotAsynchronous, NoOptions, "none", "rounds, which wait for their messages", "");

}  // namespace
}  // namespace fl
