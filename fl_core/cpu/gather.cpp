#include "fl_core/cpu/gather.hpp"

#include <cstddef>
#include <cstring>

#include "fl_core/cpu/entries.hpp"

namespace fl::cpu {
namespace {

// Evaluates the segment and takes the entries of each tile while it is in L1. `at` walks over the support; returns its new place.
template <class T>
std::size_t gather_segment(const ClientPass<T>& pass, const Segment& segment, std::span<const std::uint32_t> index, std::size_t at, T factor,
                           WireValue wire, T* value) {
  for (std::size_t begin = segment.begin; begin < segment.end; begin += kTile) {
    const std::size_t count = std::min(kTile, segment.end - begin);
    load_tile(*pass.input, pass.client, begin, count, pass.state + begin);
    for (; at < index.size() && index[at] < begin + count; ++at) {
      T& p = pass.state[index[at]];
      value[at] = wire_value(wire, factor * p);
      p = state_where_sent(pass.rule, p, value[at]);
    }
  }
  return at;
}

template <class T>
void gather_client(const ClientPass<T>& pass, const Scope& scope, const Support& support, T factor, WireValue wire, Payload<T>& out) {
  out.positions = Positions::list;
  out.values = wire;
  out.num_sent = support.index.size();
  if (support.index.data() != out.index.data() || out.index.size() != out.num_sent) {
    out.index.resize_discard(out.num_sent);
    std::memcpy(out.index.data(), support.index.data(), support.index.size_bytes());
  }
  if (support.counts.data() != out.counts.data() || out.counts.size() != support.counts.size()) {
    out.counts.resize_discard(support.counts.size());
    std::memcpy(out.counts.data(), support.counts.data(), support.counts.size_bytes());
  }
  out.value.resize_discard(out.num_sent);
  T* value = out.value.data();
  if (pass.state == nullptr) {
    for (std::size_t i = 0; i < out.num_sent; ++i) value[i] = wire_value(wire, factor * pass.input->at(pass.client, out.index[i]));
    return;
  }
  std::size_t at = 0;
  for (const Segment& segment : scope.segments) at = gather_segment(pass, segment, support.index, at, factor, wire, value);
}

}  // namespace

template <class T>
void gather_rows(const Exec&, const Affine<T>& input, const Scope& scope, std::span<const Support> support, T factor, WireValue wire,
                 const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  for (std::size_t k = 0; k < input.clients(); ++k)
    gather_client(ClientPass<T>(input, state, k), scope, support[k], factor, wire, *out[k]);
}

template void gather_rows<float>(const Exec&, const Affine<float>&, const Scope&, std::span<const Support>, float, WireValue,
                                 const StateWrite<float>&, std::span<Payload<float>* const>);
template void gather_rows<double>(const Exec&, const Affine<double>&, const Scope&, std::span<const Support>, double, WireValue,
                                  const StateWrite<double>&, std::span<Payload<double>* const>);

}  // namespace fl::cpu
