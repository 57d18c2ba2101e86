// Entries at given positions: random-k, and supports that several clients share.
//
//   c_j = wire(factor * p_j) for j in the support, state from c; without a state to write only the entries themselves are read
#pragma once

#include <span>

#include "fl_core/batch_view.hpp"
#include "fl_core/exec.hpp"
#include "fl_core/layer_table.hpp"
#include "fl_core/payload.hpp"
#include "fl_core/verb_types.hpp"

namespace fl::cpu {

// support: [K]; out: [K] payloads, cleared. The spans may be those of the payloads' own index and counts.
template <class T>
void gather_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const Support> support, T factor, WireValue wire,
                 const StateWrite<T>& state, std::span<Payload<T>* const> out);

extern template void gather_rows<float>(const Exec&, const Affine<float>&, const Scope&, std::span<const Support>, float, WireValue,
                                        const StateWrite<float>&, std::span<Payload<float>* const>);
extern template void gather_rows<double>(const Exec&, const Affine<double>&, const Scope&, std::span<const Support>, double, WireValue,
                                         const StateWrite<double>&, std::span<Payload<double>* const>);

}  // namespace fl::cpu
