// No feedback: what the compressor drops is lost (DCGD, plain quantised SGD).
//
//   client  c = C(u g)        server  estimate = sum_i weight_i c_i        u: 1, or gamma when the unit is a step
#include "compressors/feedback/memoryless.hpp"
#include "fl_core/registry.hpp"

namespace fl::FL_DEVICE_NS {

template <class T>
class NoFeedback final : public Memoryless<T> {
 public:
  explicit NoFeedback(const NoOptions&) {}

  [[nodiscard]] bool takes_sum() const override { return true; }
};

FL_REGISTER_PART(Feedback, NoFeedback, NoOptions, (PartInfo{"feedback", "none", "no memory: what is dropped is lost", ""}));

}  // namespace fl::FL_DEVICE_NS
