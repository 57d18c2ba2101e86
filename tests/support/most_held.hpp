// Measures the peak memory of a thread during a call, above its memory before the call (see counted_new.cpp).
#pragma once

#include "fl_core/memory/host_bytes.hpp"

namespace fl::test {

template <class Work>
[[nodiscard]] std::int64_t most_held(const Work& work) {
  HostBytes& counted = host_bytes();
  const std::int64_t before = counted.held;
  counted.most = before;
  work();
  return counted.most - before;
}

}  // namespace fl::test
