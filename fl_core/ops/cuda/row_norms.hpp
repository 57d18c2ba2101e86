// fl_core/ops/row_norms.hpp on a GPU.
#pragma once

#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl::cuda {

template <class T>
void sums_of_squares(const Exec& exec, const Affine<T>& input, std::span<double> out);
template <class T>
void sums_of_squared_errors(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<Payload<T>* const> messages,
                            std::span<double> out);

extern template void sums_of_squares<float>(const Exec&, const Affine<float>&, std::span<double>);
extern template void sums_of_squares<double>(const Exec&, const Affine<double>&, std::span<double>);
extern template void sums_of_squared_errors<float>(const Exec&, const Affine<float>&, const Scope&, std::span<Payload<float>* const>,
                                                   std::span<double>);
extern template void sums_of_squared_errors<double>(const Exec&, const Affine<double>&, const Scope&, std::span<Payload<double>* const>,
                                                    std::span<double>);

}  // namespace fl::cuda
