// Reduces the work of tests under the sanitizers, which take ten times as long and look for other faults.
#pragma once

#if defined(__SANITIZE_ADDRESS__)  // g++
#define FL_SANITIZED 1
#elif defined(__has_feature)  // clang++
#define FL_SANITIZED __has_feature(address_sanitizer)
#else
#define FL_SANITIZED 0
#endif

namespace fl::test {

#if FL_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace fl::test

// Skips a test of the results of long arithmetic: under the sanitizers it would repeat the same lines for minutes.
#define FL_ONLY_ARITHMETIC() \
  if (::fl::test::kSanitized) GTEST_SKIP() << "arithmetic that other tests run under the sanitizers, for less time"
