// Seconds of simulated computing by kinds of devices, which `fedbits plan` shows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fl {

// The mean seconds of the clients with one kind of device, in the first round.
struct TierSeconds {
  std::string name;
  std::size_t clients = 0;
  double local_s = 0;    // gradients and steps
  double message_s = 0;  // a message in all phases
  double reading_s = 0;  // the model that the client receives

  [[nodiscard]] double round_s() const { return local_s + message_s + reading_s; }
};

// Writes and reads tiers as lines, so that a process can send them to another.
[[nodiscard]] std::string text_of_tiers(const std::vector<TierSeconds>& tiers);
[[nodiscard]] std::vector<TierSeconds> tiers_of_text(const std::string& text);

}  // namespace fl
