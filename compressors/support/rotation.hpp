// Operators on randomly rotated segments (compressors/support/rotation_maths.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compressors/support/received_levels.hpp"
#include "compressors/support/rotation_maths.hpp"
// The header of the device defines rotate_rows and decode_rotated.
#if defined(FL_DEVICE_IS_CUDA)
#include "compressors/support/rotation_on_gpu.cuh"
#else
#include "compressors/support/rotation_on_cpu.hpp"
#endif

namespace fl::FL_DEVICE_NS {

// An operator on rotated segments: it sends levels of Rx, and the message represents R^-1 of their numbers.
//
// Derived classes quantise rotated vectors into messages of 8-bit levels and scales. They also define the number that each level
// represents, in units of the segment's scale: Number, an FL_HD functor without memory accesses.
template <class T, class Number>
class Rotated : public Compressor<T> {
 public:
  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    Workspace::Frame frame(*exec.workspace);
    const auto K = static_cast<std::uint32_t>(messages.size()), at_once = rotated_at_once<T>(K, scope.P);
    T* z = frame.take<T>(at_once * scope.P);
    for (std::uint32_t first = 0; first < K; first += at_once) {
      const std::uint32_t count = std::min(at_once, K - first);
      std::vector<RandomStream> streams;
      std::vector<Payload<T>*> coded;
      for (std::uint32_t k = first; k < first + count; ++k) {
        streams.push_back(rotation_stream(context, k));
        coded.push_back(&messages[k]->code());
      }
      const Affine<T> p = input.slice(first, count);
      rotate_rows<T>(exec, streams, p, scope, z);
      quantise(exec, scope, count, z, coded);
      decode_rotated<T>(exec, streams, p, scope, coded, number(), z, state.slice(first, count), messages.subspan(first, count));
    }
  }

  void reconstruct(const Exec& exec, const CompressContext<T>& context, const Scope& scope,
                   std::span<Payload<T>* const> messages) const override {
    std::vector<RandomStream> streams;
    std::vector<Payload<T>*> coded;
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      if (!has_all_levels(*messages[k], scope)) continue;
      streams.push_back(rotation_stream(context, k));
      coded.push_back(messages[k]);
    }
    Workspace::Frame frame(*exec.workspace);
    const std::size_t K = coded.size(), at_once = rotated_at_once<T>(K, scope.P);
    T* z = frame.take<T>(at_once * scope.P);
    for (std::size_t first = 0; first < K; first += at_once) {
      const std::size_t count = std::min(at_once, K - first);
      const auto these = std::span<Payload<T>* const>(coded).subspan(first, count);
      decode_rotated<T>(exec, std::span(streams).subspan(first, count), Affine<T>{}, scope, these, number(), z, StateWrite<T>{}, these);
    }
  }

 protected:
  // Quantises z [K,P], which may be overwritten.
  virtual void quantise(const Exec& exec, const Scope& scope, std::uint32_t K, T* z, std::span<Payload<T>* const> coded) const = 0;
  [[nodiscard]] virtual Number number() const = 0;
};

}  // namespace fl::FL_DEVICE_NS
