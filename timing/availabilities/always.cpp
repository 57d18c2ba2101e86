// All clients can be reached at any time.
#include "timing/availability.hpp"

namespace fl {
namespace {

class AlwaysAvailable final : public Availability {
 public:
  explicit AlwaysAvailable(const NoOptions&) {}
  [[nodiscard]] bool is_here(std::uint32_t, double) const override { return true; }
  [[nodiscard]] double next_change(std::uint32_t, double) const override { return std::numeric_limits<double>::infinity(); }
};

FL_REGISTER_AVAILABILITY(AlwaysAvailable, NoOptions, "always", "every client can be reached at any time", "");

}  // namespace
}  // namespace fl
