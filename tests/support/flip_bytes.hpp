// Damages a file for tests: changes single bytes, one at a time, at places drawn from a fixed seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace fl::test {

struct Flip {
  std::size_t place = 0;
  unsigned char mask = 1;  // mask of the changed bits; never 0
  [[nodiscard]] std::string text() const { return "byte " + std::to_string(place) + " ^ " + std::to_string(mask); }
};

// Draws changes of bytes. Half of them change one bit, the others any bits.
inline std::vector<Flip> draw_flips(std::size_t num_bytes, std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Flip> flips;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = random() % num_bytes;
    flips.push_back({place, static_cast<unsigned char>(i % 2 == 0 ? 1u << random() % 8 : 1 + random() % 255)});
  }
  return flips;
}

inline std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Writes the bytes with one byte changed.
inline void write_flipped(const std::filesystem::path& file, std::string bytes, const Flip& flip) {
  bytes[flip.place] = static_cast<char>(static_cast<unsigned char>(bytes[flip.place]) ^ flip.mask);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace fl::test
