// What a test may do less of under the sanitizers, which take ten times as long and look for other faults.
#pragma once

namespace fl::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace fl::test
