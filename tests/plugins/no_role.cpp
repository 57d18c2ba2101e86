// Registers a part with a role that does not exist.
#include "fedbits/plugin.hpp"

namespace fl {
namespace {

template <class T>
class Half {
 public:
  explicit Half(const NoOptions&) {}
};
FL_REGISTER_PART(Half, Half, NoOptions, (PartInfo{"compresor", "half", "nothing can choose it", ""}));

}  // namespace
}  // namespace fl
