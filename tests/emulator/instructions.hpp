// The functions of fl_core/ops/cuda/instructions.cuh on the emulator. A copy is made when its thread waits for it and no
// sooner, so that a kernel that forgets to wait reads what was there before. The lanes of a warp find each other's words
// of a product in memory that they share.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/emulator/cuda_bf16.h"
#include "tests/emulator/cuda_runtime.h"

namespace fl::emulator {

// A copy that its thread has started and not waited for.
struct StartedCopy {
  std::uint32_t group;
  void (*finish)(void* to, const void* from);
  void* to;
  const void* from;
};
struct StartedCopies {
  std::uint32_t groups = 0;  // that have ended
  std::vector<StartedCopy> copies;
};
inline StartedCopies& started_copies() {
  static thread_local std::array<StartedCopies, 1024> of_threads;
  return of_threads[thread_index.x];
}

template <class T>
void copy_async(T* to, const T* from, bool is_there) {
  const auto copied = [](void* place, const void* source) { *static_cast<T*>(place) = *static_cast<const T*>(source); };
  const auto zero = [](void* place, const void*) { *static_cast<T*>(place) = T(0); };
  StartedCopies& started = started_copies();
  if (is_there)
    started.copies.push_back({started.groups, copied, to, from});
  else
    started.copies.push_back({started.groups, zero, to, from});
}
inline void end_copies() { ++started_copies().groups; }
template <std::uint32_t kOnTheirWay>
void wait_for_copies() {
  StartedCopies& started = started_copies();
  std::erase_if(started.copies, [&](const StartedCopy& copy) {
    if (copy.group + kOnTheirWay >= started.groups) return false;
    copy.finish(copy.to, copy.from);
    return true;
  });
}

[[nodiscard]] inline std::uint32_t to_tf32(float x) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  return (word & 0x7F800000u) == 0x7F800000u ? word : (word + 0x1000u) & ~0x1FFFu;
}
[[nodiscard]] inline std::uint32_t to_bf16_pair(float low, float high) {
  return std::uint32_t{__float2bfloat16(low).bits} | std::uint32_t{__float2bfloat16(high).bits} << 16;
}

struct OfTf32 {
  static constexpr unsigned kNumbers = 1;  // in a word
  static float number(std::uint32_t word, unsigned) { return std::bit_cast<float>(word); }
};
struct OfBf16 {
  static constexpr unsigned kNumbers = 2;
  static float number(std::uint32_t word, unsigned i) {
    return __bfloat162float({static_cast<std::uint16_t>(i == 0 ? word & 0xFFFFu : word >> 16)});
  }
};

template <class Format>
void multiply_words(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  struct Words {
    std::uint32_t a[4], b[2];
  };
  static thread_local Words words[32][kWarpLanes];  // of each warp
  Words(&of)[kWarpLanes] = words[thread_index.x / kWarpLanes];
  of[lane()] = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  __syncwarp();
  const unsigned group = lane() / 4, place = lane() % 4;
  for (unsigned entry = 0; entry < 4; ++entry) {
    const unsigned lower = entry / 2, column = 2 * place + entry % 2;
    for (unsigned half = 0; half < 2; ++half)
      for (unsigned depth = 0; depth < 4; ++depth)
        for (unsigned i = 0; i < Format::kNumbers; ++i)
          sum[entry] = std::fma(Format::number(of[group * 4 + depth].a[half * 2 + lower], i),
                                Format::number(of[column * 4 + depth].b[half], i), sum[entry]);
  }
  __syncwarp();
}
inline void multiply_tf32(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) { multiply_words<OfTf32>(sum, a, b); }
inline void multiply_bf16(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) { multiply_words<OfBf16>(sum, a, b); }

}  // namespace fl::emulator
