// A fuzz target's corpus, and each of its files cut short and with single bits flipped, through the target without libFuzzer.
// Built once per target; FL_FUZZ_CORPUS is the target's folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::vector<std::uint8_t>> corpus() {
  std::vector<std::vector<std::uint8_t>> files;
  for (const auto& entry : std::filesystem::directory_iterator(FL_FUZZ_CORPUS)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(FuzzReplayTest, Corpus) {
  const auto files = corpus();
  ASSERT_GE(files.size(), 6U) << "no corpus in " << FL_FUZZ_CORPUS;
  for (const auto& bytes : files) EXPECT_EQ(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()), 0);
}

TEST(FuzzReplayTest, DamagedCorpus) {
  for (const auto& bytes : corpus()) {
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      const std::vector<std::uint8_t> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
      EXPECT_EQ(LLVMFuzzerTestOneInput(part.data(), part.size()), 0);
      auto flipped = bytes;
      flipped[n] ^= static_cast<std::uint8_t>(1U << (n % 8));
      EXPECT_EQ(LLVMFuzzerTestOneInput(flipped.data(), flipped.size()), 0);
    }
  }
}

}  // namespace
