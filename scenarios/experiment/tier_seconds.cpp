#include "scenarios/experiment/tier_seconds.hpp"

#include <limits>
#include <sstream>

namespace fl {

std::string text_of_tiers(const std::vector<TierSeconds>& tiers) {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  for (const TierSeconds& tier : tiers)
    text << tier.clients << ' ' << tier.local_s << ' ' << tier.message_s << ' ' << tier.reading_s << ' ' << tier.name << '\n';
  return text.str();
}

std::vector<TierSeconds> tiers_of_text(const std::string& text) {
  std::vector<TierSeconds> tiers;
  std::istringstream lines(text);
  TierSeconds tier;
  while (lines >> tier.clients >> tier.local_s >> tier.message_s >> tier.reading_s && lines.get() == ' ' && std::getline(lines, tier.name))
    tiers.push_back(tier);
  return tiers;
}

}  // namespace fl
