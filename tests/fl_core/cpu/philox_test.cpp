// Compares the vectorised generator with Random123, word for word.
#include <Random123/philox.h>
#include <gtest/gtest.h>

#include "fl_core/ops/cpu/philox_tile.hpp"

namespace fl::cpu {
namespace {

std::uint32_t word_of(std::uint64_t key, std::uint32_t client, std::uint32_t round, std::uint32_t step_layer, std::uint64_t index) {
  const r123::Philox4x32::ctr_type counter = {{static_cast<std::uint32_t>(index / 4), client, round, step_layer}};
  const r123::Philox4x32::key_type k = {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}};
  return r123::Philox4x32()(counter, k)[index % 4];
}

TEST(PhiloxTile, EqualsRandom123FromAnyPosition) {
  std::vector<std::uint32_t> buffer(kRandomTile);
  const std::uint64_t key = 0xFEDCBA9876543210ull;
  for (const auto& [client, round] : {std::pair<std::uint32_t, std::uint32_t>{0, 0}, {7, 123}, {0xFFFFFFFF, 0x80000001}}) {
    const RandomStream stream(key, client, round, 3, 9);
    for (const std::size_t begin : {0ul, 1ul, 2ul, 3ul, 5ul, 511ul, 65534ul, (1ul << 32) + 6, (1ul << 34) - 2048}) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{63}, std::size_t{129}, kTile}) {
        const std::uint32_t* words = random_tile(stream, begin, count, buffer.data());
        ASSERT_LE(words + count, buffer.data() + buffer.size());
        for (std::size_t j = 0; j < count; ++j)
          ASSERT_EQ(words[j], word_of(key, client, round, 3u << 16 | 9u, begin + j)) << begin << " + " << j;
      }
    }
  }
}

TEST(PhiloxTile, PlainLoopsAndVectorsAgree) {
  const RandomStream stream(1234, 5, 6, 7, 8);
  std::uint32_t plain[4 * kPhiloxBatch], batch[4 * kPhiloxBatch];
  for (const std::uint32_t first : {0u, 1u, 1000003u, 0xFFFFFFFFu - 2 * static_cast<std::uint32_t>(kPhiloxBatch)}) {
    detail::philox_batch_plain(stream, first, plain);
    detail::PhiloxBatches(stream).make(first, batch);
    for (std::size_t i = 0; i < 4 * kPhiloxBatch; ++i) ASSERT_EQ(plain[i], batch[i]) << first << " word " << i;
  }
}

}  // namespace
}  // namespace fl::cpu
