// Everything is sent: the segments' values in a wire format (identity), and the tensors that no operator compresses (excluded).
#pragma once

#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl::cpu {

// Values of all segments, one after another, rounded to the wire format; state from the rounded values. out: [K] payloads, cleared.
template <class T>
FL_API void dense_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, WireValue wire, const StateWrite<T>& state,
                       std::span<Payload<T>* const> out);

// Values of the excluded tensors, as they are, into Payload::excluded; they leave no error, so their state becomes 0. Called once per
// message by the caller of the operator, never by operators; where the state lies over a term of the input, before or after them alike.
template <class T>
FL_API void send_excluded(const Exec& exec, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                          std::span<Payload<T>* const> out);

extern template void dense_rows<float>(const Exec&, const Affine<float>&, const Scope&, WireValue, const StateWrite<float>&,
                                       std::span<Payload<float>* const>);
extern template void dense_rows<double>(const Exec&, const Affine<double>&, const Scope&, WireValue, const StateWrite<double>&,
                                        std::span<Payload<double>* const>);
extern template void send_excluded<float>(const Exec&, const Affine<float>&, const Scope&, const StateWrite<float>&,
                                          std::span<Payload<float>* const>);
extern template void send_excluded<double>(const Exec&, const Affine<double>&, const Scope&, const StateWrite<double>&,
                                           std::span<Payload<double>* const>);

}  // namespace fl::cpu
