// A token bucket: bytes pass at a given rate on average, and up to `burst` bytes pass at once after a pause.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace fl::net {

// Times are since any fixed instant and do not decrease from call to call.
class TokenBucket {
 public:
  using Time = std::chrono::nanoseconds;

  // The bucket is full at first. A rate of 0 means that nothing is limited.
  TokenBucket(double bytes_per_s, double burst_bytes) : rate_(bytes_per_s), burst_(burst_bytes), level_(burst_bytes) {}

  // Takes tokens for `bytes` and returns the time at which they are there: now, or later if the bucket has too few. The level may become
  // negative; then later calls wait for their predecessors.
  [[nodiscard]] Time take(std::size_t bytes, Time now) {
    if (rate_ <= 0) return now;
    level_ = std::min(burst_, level_ + rate_ * std::chrono::duration<double>(now - last_).count());
    last_ = now;
    level_ -= static_cast<double>(bytes);
    if (level_ >= 0) return now;
    return now + std::chrono::ceil<Time>(std::chrono::duration<double>(-level_ / rate_));
  }

 private:
  double rate_, burst_, level_;
  Time last_{0};
};

}  // namespace fl::net
