#include "scenarios/data/characters.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

#include "fl_core/config/error.hpp"

namespace fl {
namespace {

constexpr char32_t kLow = 256;

// The code point at the front of `text` and its bytes; 0 bytes where it is not UTF-8 (RFC 3629: no longer form than needed, no surrogates).
struct Decoded {
  char32_t point = 0;
  std::size_t bytes = 0;
};
Decoded decode_one(std::string_view text) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t bytes = byte(0) >= 0xF0 && byte(0) < 0xF8 ? 4 : byte(0) >= 0xE0 ? 3 : byte(0) >= 0xC0 ? 2 : 0;
  if (bytes == 0 || byte(0) >= 0xF8 || text.size() < bytes) return {};
  char32_t point = byte(0) & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    point = point << 6 | (byte(i) & 0x3Fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[bytes] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return {};
  return {point, bytes};
}

std::string encode(char32_t point) {
  const auto byte = [](char32_t value) { return static_cast<char>(static_cast<unsigned char>(value)); };
  if (point == U'\n') return "\\n";
  if (point < 0x80) return {byte(point)};
  if (point < 0x800) return {byte(0xC0 | point >> 6), byte(0x80 | (point & 0x3F))};
  if (point < 0x10000) return {byte(0xE0 | point >> 12), byte(0x80 | (point >> 6 & 0x3F)), byte(0x80 | (point & 0x3F))};
  return {byte(0xF0 | point >> 18), byte(0x80 | (point >> 12 & 0x3F)), byte(0x80 | (point >> 6 & 0x3F)), byte(0x80 | (point & 0x3F))};
}

}  // namespace

std::string place_of(std::u32string_view text, std::size_t at, const std::filesystem::path& file) {
  const std::u32string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), U'\n') + 1;
  const std::size_t begin = before.rfind(U'\n');
  const std::size_t column = begin == std::u32string_view::npos ? at + 1 : at - begin;
  return file.string() + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::u32string decode_utf8(std::string_view text, const std::filesystem::path& file) {
  std::u32string points;
  points.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Decoded decoded = decode_one(text.substr(at));
    if (decoded.bytes == 0) {
      char byte[8];
      std::snprintf(byte, sizeof byte, "0x%02x", static_cast<unsigned char>(text[at]));
      throw DataError(place_of(points, points.size(), file) + ": the byte " + byte + " is not UTF-8");
    }
    points.push_back(decoded.point);
    at += decoded.bytes;
  }
  return points;
}

CharacterSet::CharacterSet(std::u32string_view text) : number_of_low_(kLow, -1) {
  std::vector<bool> is_low(kLow);
  std::set<char32_t> high;
  for (const char32_t c : text) {
    if (c < kLow)
      is_low[c] = true;
    else
      high.insert(c);
  }
  for (char32_t c = 0; c < kLow; ++c) {
    if (!is_low[c]) continue;
    number_of_low_[c] = static_cast<std::int32_t>(characters_.size());
    characters_.push_back(c);
  }
  characters_.append(high.begin(), high.end());
}

std::vector<std::string> CharacterSet::names() const {
  std::vector<std::string> names;
  for (const char32_t c : characters_) names.push_back(encode(c));
  return names;
}

std::vector<std::int32_t> CharacterSet::numbers_of(std::u32string_view text, const std::filesystem::path& file) const {
  std::vector<std::int32_t> numbers;
  numbers.reserve(text.size());
  for (const char32_t c : text) {
    std::int32_t number = -1;
    if (c < kLow) {
      number = number_of_low_[c];
    } else if (const auto found = std::lower_bound(characters_.begin(), characters_.end(), c); found != characters_.end() && *found == c) {
      number = static_cast<std::int32_t>(found - characters_.begin());
    }
    if (number < 0)
      throw DataError(place_of(text, numbers.size(), file) + ": the character '" + encode(c) + "' is not in the training text");
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace fl
