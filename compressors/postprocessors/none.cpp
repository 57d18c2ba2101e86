// No postprocessing: vectors and the estimate stay as they are.
#include "compressors/postprocessors/postprocessor.hpp"
#include "fl_core/config/registry.hpp"

namespace fl::FL_DEVICE_NS {
namespace {

template <class T>
class NoPostprocessor final : public Postprocessor<T> {
 public:
  explicit NoPostprocessor(const NoOptions&) {}
  [[nodiscard]] PostprocessorPlan plan() const override { return {.client_cost = EntryCost{}, .server_cost = EntryCost{}}; }
};

FL_REGISTER_PART(Postprocessor, NoPostprocessor, NoOptions,
                 (PartInfo{"postprocessor", "none", "leaves vectors and the estimate as they are", ""}));

}  // namespace
}  // namespace fl::FL_DEVICE_NS
