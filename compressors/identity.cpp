// No compression, or only a change of number format.
//
//   C(x)_j = x_j rounded to the format (to nearest, ties to even)
//
// Without rounding it belongs to every class: kappa = 0, delta = 1, omega = 0. In fp16 |C(x)_j - x_j| <= 2^-11 |x_j| between 2^-14 and
// 65520: a contraction with delta = 1 - 2^-22 there; smaller numbers lose relative precision and larger ones overflow. In bf16 the relative
// error is 2^-8 over the range of float32 (delta = 1 - 2^-16).
// Group: quantiser
#include "compressors/compressor.hpp"
#include "compressors/support/value_format.hpp"
#include "fl_core/config/aliases.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct IdentityOptions {
  ValueFormat format = ValueFormat::native;
};

inline void describe(Schema& s, IdentityOptions& o) {
  s.choice("format", o.format, value_format_names(), "number format on the wire; native is the scenario's precision");
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
class Identity final : public Compressor<T> {
 public:
  explicit Identity(const IdentityOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope&) const override {
    const double rounding = relative_rounding<T>(options_.format);
    Contract contract;
    contract.cost = EntryCost{1, rounding > 0 ? 2.0 : 0.0};
    contract.delta = 1 - rounding * rounding;
    contract.domain = rounding_domain<T>(options_.format);
    if (rounding == 0) {
      contract.kappa = 0;
      contract.omega = 0;
      contract.linear = true;
    }
    return contract;
  }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    dense_rows(exec, input, scope, wire_of<T>(options_.format), state, messages);
  }

  // Returns 32 bits per value, as published, or the bits of the configured format.
  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope&) const override {
    const int per_value = options_.format == ValueFormat::native ? 32 : bits_of(wire_of<T>(options_.format));
    return static_cast<double>(message.elements()) * per_value;
  }

 private:
  IdentityOptions options_;
};

FL_REGISTER_PART(Compressor, Identity, IdentityOptions,
                 (PartInfo{"compressor", "identity", "sends every value; format = \"fp16\" or \"bf16\" sends it in 16 bits", ""}));
#if !defined(FL_DEVICE_IS_CUDA)
const bool kFp16 = add_alias({"compressor", "fp16", "identity", {{"format", Value{std::string("fp16")}}}, "", "IEEE 754-2019, binary16"});
const bool kBf16 = add_alias(
    {"compressor", "bf16", "identity", {{"format", Value{std::string("bf16")}}}, "", "Intel, BFLOAT16 hardware numerics definition, 2018"});
#endif

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
