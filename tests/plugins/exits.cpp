// Ends the process while it is loaded, with an exit code that indicates success.
#include <unistd.h>

namespace {
const int kEnded = (::_exit(0), 0);
}  // namespace
