// Messages of the entries that candidates.cuh has chosen, and of those that are marked where it has chosen none.
#pragma once

#include <cstdint>
#include <span>

#include "fl_core/ops/cuda/candidates.cuh"
#include "fl_core/ops/cuda/plan.cuh"

namespace fl::cuda {

// Whether the state of what is sent is written, or still holds p there, since the caller writes it.
enum class SentState { settled, left };

// As send_marked (marks.cuh), where some of the segments are chosen; the marks of chosen segments are not read.
template <class T>
void send_chosen(const Exec& exec, const Affine<T>& input, const ScopePlan& plan, const Chosen<T>& chosen, const std::uint32_t* mark,
                 WireValue wire, const StateWrite<T>& state, SentState sent, std::span<Payload<T>* const> out, Workspace::Frame& frame);

extern template void send_chosen<float>(const Exec&, const Affine<float>&, const ScopePlan&, const Chosen<float>&, const std::uint32_t*,
                                        WireValue, const StateWrite<float>&, SentState, std::span<Payload<float>* const>,
                                        Workspace::Frame&);
extern template void send_chosen<double>(const Exec&, const Affine<double>&, const ScopePlan&, const Chosen<double>&, const std::uint32_t*,
                                         WireValue, const StateWrite<double>&, SentState, std::span<Payload<double>* const>,
                                         Workspace::Frame&);

// top_k_rows (top_k.cuh).
template <class T>
void largest_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const std::uint32_t> k, TieRule ties,
                  WireValue wire, const StateWrite<T>& state, SentState sent, std::span<Payload<T>* const> out);

extern template void largest_rows<float>(const Exec&, const Affine<float>&, const Scope&, std::span<const std::uint32_t>, TieRule,
                                         WireValue, const StateWrite<float>&, SentState, std::span<Payload<float>* const>);
extern template void largest_rows<double>(const Exec&, const Affine<double>&, const Scope&, std::span<const std::uint32_t>, TieRule,
                                          WireValue, const StateWrite<double>&, SentState, std::span<Payload<double>* const>);

}  // namespace fl::cuda
