// No feedback: what the compressor drops is lost (DCGD, plain quantised SGD).
//
//   client  c = C(u g)        server  estimate = sum_i weight_i c_i        u: 1, or gamma when the unit is a step
#include <algorithm>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/registry.hpp"

namespace fl::FL_DEVICE_NS {

template <class T>
class NoFeedback final : public Feedback<T> {
 public:
  explicit NoFeedback(const NoOptions&) {}

  [[nodiscard]] Send<T> prepare(const Exec&, const RoundContext<T>& context, const ClientBlock<T>& block,
                                std::size_t channel) const override {
    Send<T> send;
    send.input.add(context.input_factor(), block.vectors[channel]);
    return send;
  }
  void acknowledge(const RoundContext<T>&, const ClientBlock<T>&, std::uint32_t, const Exchange<T>&) const override {}
  void receive(const RoundContext<T>&, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    std::copy(aggregates[0].estimate.begin(), aggregates[0].estimate.end(), estimate.begin());
  }
};

FL_REGISTER_PART(Feedback, NoFeedback, NoOptions, (PartInfo{"feedback", "none", "no memory: what is dropped is lost", ""}));

}  // namespace fl::FL_DEVICE_NS
