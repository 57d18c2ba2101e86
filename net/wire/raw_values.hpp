// Raw values in payloads: floating-point numbers in memory representation, little endian, which both ends share (Hello.build).
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "compressors/codec/codec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/state/shared_state.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

// Returns a scope that contains a vector as one segment.
[[nodiscard]] inline Scope whole_vector(std::size_t length) {
  return {.kind = ScopeKind::model, .segments = {{.begin = 0, .end = length, .rows = length, .cols = 1}}, .excluded = {}, .P = length};
}

template <class T>
void append(Bytes& bytes, std::span<const T> values) {
  const std::span<const std::byte> raw = std::as_bytes(values);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// Appends values without the entries of parameters that are not shared, which are 0 in all vectors except models.
template <class T>
void append_shared(Bytes& bytes, std::span<const T> values, std::span<const ParameterRange> unshared) {
  for_each_run_outside(unshared, 0, values.size(),
                       [&](std::size_t begin, std::size_t end) { append(bytes, values.subspan(begin, end - begin)); });
}

// Shared slots that `which` chooses, one after another.
template <class T, class Which>
[[nodiscard]] std::shared_ptr<const Bytes> slot_bytes(const SharedState<T>& shared, std::span<const ParameterRange> unshared,
                                                      const Which& which) {
  Bytes bytes;
  for (const SlotSpec& slot : shared.specs())
    if (which(slot)) append_shared(bytes, shared.slot(slot.name), slot.length == 0 ? unshared : std::span<const ParameterRange>());
  return std::make_shared<const Bytes>(std::move(bytes));
}

// A vector without the entries of parameters that are not shared, raw.
template <class T>
[[nodiscard]] std::shared_ptr<const Bytes> shared_bytes(std::span<const T> vector, std::span<const ParameterRange> unshared) {
  Bytes bytes;
  append_shared(bytes, vector, unshared);
  return std::make_shared<const Bytes>(std::move(bytes));
}

// Returns a vector as a message of the codec: 1 byte and its values.
template <class T>
[[nodiscard]] std::shared_ptr<const Bytes> dense_message(std::span<const T> values) {
  const Scope scope = whole_vector(values.size());
  Payload<T> payload;
  payload.clear(values.size());
  payload.num_sent = values.size();
  payload.value.resize_discard(values.size());
  std::ranges::copy(values, payload.value.begin());
  const codec::Channel<T> channel{&payload, &scope};
  Bytes bytes;
  codec::encode<T>(std::span(&channel, 1), bytes);
  return std::make_shared<const Bytes>(std::move(bytes));
}

// Reads such a message. Throws ProtocolError for other bytes.
template <class T>
void read_dense_message(std::span<const std::byte> bytes, std::span<T> values) {
  const Scope scope = whole_vector(values.size());
  const Scope* scopes[] = {&scope};
  const std::size_t lengths[] = {values.size()};
  Payload<T> payload;
  Payload<T>* targets[] = {&payload};
  const Result<std::uint64_t> read = codec::decode<T>(bytes, scopes, lengths, targets);
  if (!read.ok()) throw ProtocolError("a vector cannot be read: " + read.error().reason);
  write_dense(payload, scope, values.data());
}

// Reads one array of values after another.
class RawReader {
 public:
  explicit RawReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  // Fills `values`. Throws ProtocolError if the payload has fewer.
  template <class T>
  void read(std::span<T> values) {
    if (rest_.size() < values.size_bytes())
      throw ProtocolError("a payload ends " + std::to_string(values.size_bytes() - rest_.size()) + " bytes too early");
    if (!values.empty()) std::memcpy(values.data(), rest_.data(), values.size_bytes());
    rest_ = rest_.subspan(values.size_bytes());
  }
  // Fills all entries except those of parameters that are not shared, which become 0.
  template <class T>
  void read_shared(std::span<T> values, std::span<const ParameterRange> unshared) {
    clear_ranges(unshared, values.data());
    for_each_run_outside(unshared, 0, values.size(), [&](std::size_t begin, std::size_t end) { read(values.subspan(begin, end - begin)); });
  }
  // Returns the next bytes as they are.
  [[nodiscard]] Bytes take(std::size_t size) {
    Bytes bytes(std::min(size, rest_.size()));
    read(std::span(bytes));
    if (bytes.size() < size) throw ProtocolError("a payload ends " + std::to_string(size - bytes.size()) + " bytes too early");
    return bytes;
  }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }
  // Throws ProtocolError if bytes are left.
  void finish() const {
    if (!rest_.empty()) throw ProtocolError("a payload has " + std::to_string(rest_.size()) + " bytes too many");
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace fl::net
