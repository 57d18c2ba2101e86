// Reads the pictures that a headless browser makes: PNG with 8 bits for each of three or four channels.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fl::test {

using Colour = std::array<std::uint8_t, 3>;

struct Picture {
  std::size_t width = 0, height = 0;
  std::vector<Colour> pixels;

  [[nodiscard]] Colour at(std::size_t x, std::size_t y) const { return pixels.at(y * width + x); }
  [[nodiscard]] std::size_t count(const Colour& colour) const {
    return static_cast<std::size_t>(std::count(pixels.begin(), pixels.end(), colour));
  }
};

inline std::uint8_t paeth(int a, int b, int c) {
  const int p = a + b - c, pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
  return static_cast<std::uint8_t>(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

inline Picture read_png(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  const std::string bytes = text.str();
  Picture picture;
  if (bytes.size() < 33) return picture;
  const auto number = [&bytes](std::size_t at) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes.at(at + i));
    return value;
  };
  picture.width = number(16);
  picture.height = number(20);
  const std::size_t channels = bytes[25] == 6 ? 4 : 3, stride = picture.width * channels;
  std::string packed;
  for (std::size_t at = 8; at + 12 <= bytes.size(); at += 12 + number(at))
    if (bytes.compare(at + 4, 4, "IDAT") == 0) packed += bytes.substr(at + 8, number(at));
  std::vector<std::uint8_t> raw((stride + 1) * picture.height), above(stride, 0);
  uLongf size = raw.size();
  EXPECT_EQ(::uncompress(raw.data(), &size, reinterpret_cast<const Bytef*>(packed.data()), packed.size()), Z_OK);
  for (std::size_t y = 0; y < picture.height; ++y) {
    std::uint8_t* row = raw.data() + y * (stride + 1) + 1;
    for (std::size_t i = 0; i < stride; ++i) {
      const int left = i >= channels ? row[i - channels] : 0, up = above[i], corner = i >= channels ? above[i - channels] : 0;
      const int guess[] = {0, left, up, (left + up) / 2, paeth(left, up, corner)};
      row[i] = static_cast<std::uint8_t>(row[i] + guess[std::min<std::uint8_t>(row[-1], 4)]);
    }
    above.assign(row, row + stride);
    for (std::size_t x = 0; x < picture.width; ++x)
      picture.pixels.push_back({row[x * channels], row[x * channels + 1], row[x * channels + 2]});
  }
  return picture;
}

}  // namespace fl::test
