#include "net/wire/client_ranges.hpp"

#include <algorithm>
#include <charconv>

#include "fl_core/config/key_error.hpp"

namespace fl::net {

namespace {

constexpr const char* kClientsKey = "--clients";

std::uint32_t number_in(std::string_view text, const std::string& whole) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw key_error(kClientsKey, "must be ids and ranges of ids as in 0-4,7, is '" + whole + "'");
  return number;
}

}  // namespace

std::vector<ClientRange> parse_client_ranges(const std::string& text) {
  std::vector<ClientRange> ranges;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view part = std::string_view(text).substr(at, comma - at);
    const std::size_t dash = part.find('-');
    const std::uint32_t first = number_in(part.substr(0, dash), text);
    const std::uint32_t last = dash == std::string_view::npos ? first : number_in(part.substr(dash + 1), text);
    if (last < first) throw key_error(kClientsKey, "has a range that descends: '" + std::string(part) + "'");
    if (!ranges.empty() && first <= ranges.back().last) throw key_error(kClientsKey, "must ascend without an id twice, is '" + text + "'");
    ranges.push_back({first, last});
    at = comma + 1;
  }
  return ranges;
}

std::string to_text(const std::vector<ClientRange>& ranges) {
  std::string text;
  for (const auto& [first, last] : ranges)
    text += (text.empty() ? "" : ",") + std::to_string(first) + (first == last ? "" : "-" + std::to_string(last));
  return text;
}

std::vector<ClientRange> ranges_of(const std::vector<std::uint32_t>& ids) {
  std::vector<ClientRange> ranges;
  for (const std::uint32_t id : ids) {
    if (!ranges.empty() && ranges.back().last + 1 == id)
      ranges.back().last = id;
    else
      ranges.push_back({id, id});
  }
  return ranges;
}

std::uint64_t num_clients(const std::vector<ClientRange>& ranges) {
  std::uint64_t count = 0;
  for (const auto& [first, last] : ranges) count += std::uint64_t{last} - first + 1;
  return count;
}

}  // namespace fl::net
