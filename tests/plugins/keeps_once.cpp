// Keeps its contract in the first round, and sends nothing in later rounds.
#include <limits>

#include "fedbits/operations.hpp"
#include "fedbits/plugin.hpp"

namespace fl::FL_DEVICE_NS {
namespace {

template <class T>
class KeepsOnce final : public Compressor<T> {
 public:
  explicit KeepsOnce(const NoOptions&) {}
  [[nodiscard]] Contract contract(const Scope&) const override {
    Contract contract;
    contract.delta = 0.75;
    return contract;
  }
  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const T threshold = context.round <= 1 ? T(0) : std::numeric_limits<T>::max();
    select_rows(exec, input, scope, AtLeast<T>{threshold}, kNativeWire<T>, state, messages);
  }
};
FL_REGISTER_PART(Compressor, KeepsOnce, NoOptions, (PartInfo{"compressor", "keeps_once", "keeps its contract for a round", ""}));

}  // namespace
}  // namespace fl::FL_DEVICE_NS
