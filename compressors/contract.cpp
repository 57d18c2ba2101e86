#include "compressors/contract.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace fl {
namespace {

// Returns the text of a number. Powers of two are written as powers if digits are less readable: 2^-14, but 448 and 512.
std::string number_text(double x) {
  int exponent = 0;
  const bool is_power = std::frexp(x, &exponent) == 0.5;
  if (is_power && (x < 1 || x > 1e6)) return "2^" + std::to_string(exponent - 1);
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", x);
  std::string digits = text;
  if (const std::size_t plus = digits.find('+'); plus != std::string::npos) digits.erase(plus, 1);
  return digits;
}

// Returns a range as "2^-6 <= |x_j| <= 448", with the name of the bounded quantity.
std::string range_text(const MagnitudeRange& range, const std::string& name) {
  const std::string from = range.least > 0 ? number_text(range.least) + " <= " : "";
  return from + name + (range.is_bounded() ? (range.below ? " < " : " <= ") + number_text(range.most) : "");
}

// Returns bounds as "of at least 1e-30", "of at most 10" or "between 1e-150 and 1e150".
std::string bounds_text(const MagnitudeRange& range) {
  if (!range.is_bounded()) return "of at least " + number_text(range.least);
  if (range.least == 0) return (range.below ? "below " : "of at most ") + number_text(range.most);
  return "between " + number_text(range.least) + " and " + number_text(range.most);
}

MagnitudeRange in_both(const MagnitudeRange& a, const MagnitudeRange& b) {
  const MagnitudeRange& lower = b.most < a.most || (b.most == a.most && b.below) ? b : a;
  return {std::max(a.least, b.least), lower.most, lower.below};
}

}  // namespace

bool Domain::is_everywhere() const {
  return entries.is_everything() && sent.is_everything() && largest.is_everything() && norm.is_everything() && remainder.empty() &&
         !up_to_rounding && unbiased_up_to.empty();
}

std::string to_string(const Domain& domain) {
  std::string text;
  const auto add = [&text](const std::string& condition) { text += (text.empty() ? "" : "; ") + condition; };
  if (domain.up_to_rounding) add("up to rounding");
  if (!domain.entries.is_everything()) add((domain.entries.least > 0 ? "x_j = 0 or " : "") + range_text(domain.entries, "|x_j|"));
  if (!domain.sent.is_everything()) add("entries that are sent are 0 or " + range_text(domain.sent, "|x_j|"));
  if (!domain.largest.is_everything()) add("segments are 0 or have max|x| " + bounds_text(domain.largest));
  if (!domain.norm.is_everything()) add("segments are 0 or have a norm " + bounds_text(domain.norm));
  if (domain.at_step_size_one()) add("at step size 1");
  for (const Domain& rest : domain.remainder)
    if (const std::string words = to_string(rest); !words.empty()) add("what remains: " + words);
  if (!domain.unbiased_up_to.empty()) add("unbiased up to " + domain.unbiased_up_to);
  return text;
}

Domain in_both(const Domain& a, const Domain& b) {
  Domain both;
  both.entries = in_both(a.entries, b.entries);
  both.sent = in_both(a.sent, b.sent);
  both.largest = in_both(a.largest, b.largest);
  both.norm = in_both(a.norm, b.norm);
  both.remainder = a.remainder;
  for (const Domain& rest : b.remainder)
    if (std::ranges::none_of(a.remainder, [&rest](const Domain& known) { return to_string(known) == to_string(rest); }))
      both.remainder.push_back(rest);
  both.up_to_rounding = a.up_to_rounding || b.up_to_rounding;
  both.follows_step = a.follows_step || b.follows_step;
  both.follows_local_step = a.follows_local_step || b.follows_local_step;
  both.follows_local_total = a.follows_local_total || b.follows_local_total;
  const bool adds = !b.unbiased_up_to.empty() && a.unbiased_up_to.find(b.unbiased_up_to) == std::string::npos;
  both.unbiased_up_to = a.unbiased_up_to + (adds ? (a.unbiased_up_to.empty() ? "" : " and ") + b.unbiased_up_to : "");
  return both;
}

}  // namespace fl
