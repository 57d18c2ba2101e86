// Operations on a decoded message that all receivers share: visit its entries, add it to a vector, write it out.
#pragma once

#include <cstddef>
#include <span>

#include "fl_core/config/device.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl {

// Computes target[j] += T(factor * c_j) once for each sent entry. This is the state rule h += lambda*c of EF21, DIANA and related methods.
template <class T>
FL_API void add_scaled(const Payload<T>& message, const Scope& scope, T factor, T* target);

// Computes sum[j] += weight * double(c_j) for the coordinates first .. last-1 only, so that threads can split a vector by ranges.
template <class T>
FL_API void accumulate(const Payload<T>& message, const Scope& scope, double weight, std::size_t first, std::size_t last, double* sum);

// Does the same for messages [M] one after another (null: none), with weights [M]. Dense messages are added several at a time; the order
// of each coordinate's sum does not change.
template <class T>
FL_API void accumulate(std::span<const Payload<T>* const> messages, const Scope& scope, std::span<const double> weights, std::size_t first,
                       std::size_t last, double* sum);

// Computes out[j] = c_j, zero for entries that were not sent. out: [length]
template <class T>
FL_API void write_dense(const Payload<T>& message, const Scope& scope, T* out);

// Sets target[j] = 0 for each sent entry (momentum factor masking).
template <class T>
FL_API void zero_where_sent(const Payload<T>& message, const Scope& scope, T* target);

extern template void add_scaled<float>(const Payload<float>&, const Scope&, float, float*);
extern template void add_scaled<double>(const Payload<double>&, const Scope&, double, double*);
extern template void accumulate<float>(const Payload<float>&, const Scope&, double, std::size_t, std::size_t, double*);
extern template void accumulate<double>(const Payload<double>&, const Scope&, double, std::size_t, std::size_t, double*);
extern template void accumulate<float>(std::span<const Payload<float>* const>, const Scope&, std::span<const double>, std::size_t,
                                       std::size_t, double*);
extern template void accumulate<double>(std::span<const Payload<double>* const>, const Scope&, std::span<const double>, std::size_t,
                                        std::size_t, double*);
extern template void write_dense<float>(const Payload<float>&, const Scope&, float*);
extern template void write_dense<double>(const Payload<double>&, const Scope&, double*);
extern template void zero_where_sent<float>(const Payload<float>&, const Scope&, float*);
extern template void zero_where_sent<double>(const Payload<double>&, const Scope&, double*);

}  // namespace fl
