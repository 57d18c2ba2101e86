// A postprocessor: clients' vectors are clipped entry by entry, v_j <- max(-limit, min(limit, v_j)).
#include "compressors/postprocessors/postprocessor.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct ValueClippingOptions {
  double limit = 1.0;
};
inline void describe(Schema& schema, ValueClippingOptions& options) {
  schema.field("limit", options.limit, "largest magnitude of an entry").above(0);
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
struct ClipValues {
  BatchView<T> rows;
  T limit;
  FL_HD void operator()(std::size_t i) const {
    const std::size_t k = i / rows.P;
    T& x = rows.row(k)[i - k * rows.P];
    x = x < -limit ? -limit : x > limit ? limit : x;
  }
};

template <class T>
class ValueClipping final : public Postprocessor<T> {
 public:
  explicit ValueClipping(const ValueClippingOptions& options) : limit_(options.limit) {}

  [[nodiscard]] PostprocessorPlan plan() const override {
    return {.changes_vectors = true, .one_vector = true, .bound = VectorBound{VectorBound::Norm::infinity, limit_}};
  }
  void on_client(const Exec& exec, const ClientRound<T>&, const ClientBlock<T>& block, std::size_t vector) const override {
    const BatchView<T>& rows = block.vectors[vector];
    for_each(exec, std::size_t{rows.K} * rows.P, ClipValues<T>{rows, static_cast<T>(limit_)});
  }

 private:
  double limit_;
};

FL_REGISTER_PART(Postprocessor, ValueClipping, ValueClippingOptions,
                 (PartInfo{"postprocessor", "value_clipping", "clips every entry of clients' vectors", ""}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
