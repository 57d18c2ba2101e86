// The watch of a binary that is built without FL_NET.
#include "apps/fedbits/study_watch.hpp"
#include "fl_core/config/key_error.hpp"

namespace fl {

std::unique_ptr<StudyWatch> watch_study(const std::string&, const std::string& address, bool) {
  if (!address.empty())
    throw key_error(
        "--status",
        "this fedbits was built without the network (FL_NET=OFF); FEDBITS_NET=1 ./quickstart.sh or cmake -DFL_NET=ON builds it");
  return std::make_unique<StudyWatch>();
}

}  // namespace fl
