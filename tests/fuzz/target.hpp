// Fuzz targets: each file *_target.cpp registers functions that take any bytes, and that must either use them or reject them with one of
// the library's errors. The program test_fuzz replays the seeds in corpus/NAME; `scripts/fuzz.sh NAME SECONDS` looks for inputs that break
// a target.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace fl::fuzz {

struct Target {
  std::string_view name;                          // also the folder of its seeds
  void (*run)(std::span<const std::byte> bytes);  // aborts where something does not hold; throws nothing
};

// Returns the targets of this program, in the order of their names.
std::vector<Target> targets();

// Adds a target; a static object of this type for each.
struct Register {
  Register(std::string_view name, void (*run)(std::span<const std::byte> bytes));
};

// Aborts with `what` where the condition does not hold: the fuzzer and the replaying test both notice that.
void require(bool condition, std::string_view what);

// Returns the bytes as text.
inline std::string_view as_text(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace fl::fuzz
