// A message on another device: what an operator left on a GPU, brought to the host that encodes it. A visible copy; complete on return.
#pragma once

#include "fl_core/memory/buffer.hpp"
#include "fl_core/message/payload.hpp"

namespace fl::cuda {

// to = from, into the memory that `to` has on its device.
template <class U>
void copy_buffer(const Buffer<U>& from, Buffer<U>& to, void* stream) {
  to.resize_for_overwrite(from.size());
  if (!from.empty()) ::fl::copy_bytes(to.data(), to.device(), from.data(), from.device(), from.size() * sizeof(U), stream);
}

template <class T>
void copy_payload(const Payload<T>& from, Payload<T>& to, void* stream) {
  to.clear(from.length);
  to.positions = from.positions;
  to.values = from.values;
  to.level_format = from.level_format;
  to.level_width = from.level_width;
  to.set_known_positions(from.has_known_positions());
  to.silent = from.silent;
  to.num_sent = from.num_sent;
  copy_buffer(from.counts, to.counts, stream);
  copy_buffer(from.index, to.index, stream);
  copy_buffer(from.value, to.value, stream);
  copy_buffer(from.level_bytes, to.level_bytes, stream);
  copy_buffer(from.scale, to.scale, stream);
  copy_buffer(from.excluded, to.excluded, stream);
  if (from.rest != nullptr) {
    to.rest = std::make_unique<Payload<T>>();
    to.rest->place_on(to.index.device());
    copy_payload(*from.rest, *to.rest, stream);
  }
  if (&from.on_wire() == &from) return;
  Payload<T>& code = to.code();
  code.place_on(to.index.device());
  copy_payload(from.on_wire(), code, stream);
}

}  // namespace fl::cuda
