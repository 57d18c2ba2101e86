// Throws while it is loaded.
#include <stdexcept>

namespace {
[[noreturn]] int fail() { throw std::runtime_error("no licence was found"); }
const int kFailed = fail();
}  // namespace
