// Norms of K clients' vectors, for measures, on either device. All devices give the same bits, in the order of fl_core/ops/cpu/reduce.hpp
// with all P entries as one segment. On a GPU, views and their `rows` are in GPU memory; the call waits for the GPU.
#pragma once

#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl {

// Computes out[k] = sum_j p_kj^2, squared and summed in double. input: [K,P], out: [K] in host memory.
template <class T>
FL_API void sums_of_squares(const Exec& exec, const Affine<T>& input, std::span<double> out);

// Computes out[k] = sum_j (p_kj - c_kj)^2, with the difference rounded in T. Messages [K] have P entries each and are on exec.device.
template <class T>
FL_API void sums_of_squared_errors(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<Payload<T>* const> messages,
                                   std::span<double> out);

extern template void sums_of_squares<float>(const Exec&, const Affine<float>&, std::span<double>);
extern template void sums_of_squares<double>(const Exec&, const Affine<double>&, std::span<double>);
extern template void sums_of_squared_errors<float>(const Exec&, const Affine<float>&, const Scope&, std::span<Payload<float>* const>,
                                                   std::span<double>);
extern template void sums_of_squared_errors<double>(const Exec&, const Affine<double>&, const Scope&, std::span<Payload<double>* const>,
                                                    std::span<double>);

}  // namespace fl
