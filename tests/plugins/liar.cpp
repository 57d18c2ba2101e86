// Claims to be a contraction although it is not one, and throws for blocks of three clients.
#include <stdexcept>

#include "fedbits/operations.hpp"
#include "fedbits/plugin.hpp"

namespace fl::FL_DEVICE_NS {
namespace {

template <class T>
class Liar final : public Compressor<T> {
 public:
  explicit Liar(const NoOptions&) {}
  [[nodiscard]] Contract contract(const Scope&) const override {
    Contract contract;
    contract.delta = 0.75;
    return contract;
  }
  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    if (context.clients.size() == 3) throw std::out_of_range("three clients are one too many");
    select_rows(exec, input, scope, AtLeast<T>{T(0.5)}, kNativeWire<T>, state, messages);
  }
};
FL_REGISTER_PART(Compressor, Liar, NoOptions, (PartInfo{"compressor", "liar", "claims too much", ""}));

}  // namespace
}  // namespace fl::FL_DEVICE_NS
