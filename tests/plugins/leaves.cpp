// Ends the process with exit() while it is loaded: handlers and destructors run, and the exit code indicates success.
#include <cstdlib>

namespace {
const int kEnded = (std::exit(0), 0);
}  // namespace
