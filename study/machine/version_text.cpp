#include "study/machine/version_text.hpp"

namespace fl {

std::string build_level() { return FL_LEVEL_NAME; }

std::string build_compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

std::string version_text() { return "fedbits " FL_VERSION "\nbuilt for " + build_level() + " with " + build_compiler(); }

}  // namespace fl
