// The clients' end of the downlink: the model w from its received bytes (fl_core/message/down_message.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "compressors/exchange.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/message/down_message.hpp"
#include "fl_core/state/archive.hpp"

namespace fl {

template <class T>
class ModelReader {
 public:
  // `channel` is the downlink's (name "down"), for models of P entries. Nobody sends kept parameters, and their entries of w
  // remain 0.
  ModelReader(ExchangeChannel<T> channel, std::size_t P, ParameterKinds kinds);

  // Moves w to its value in `round`. The message may contain rounds whose w has already been read: these are skipped. Returns why the bytes
  // are not such a message, or "".
  [[nodiscard]] std::string read(std::uint32_t round, const DownMessage& message);
  // Returns w [P] of the round that was read last; zeros before the first round.
  [[nodiscard]] std::span<const T> reference() const { return reference_.span(); }
  // Returns the round that was read last; 0 = none.
  [[nodiscard]] std::uint32_t round() const { return round_; }
  // Writes or reads w and its round.
  void persist(Archive& archive) {
    archive.section("model");
    archive.value(round_);
    archive.array(reference_.span());
  }

 private:
  [[nodiscard]] std::string read_dense(std::span<const std::byte> bytes);
  [[nodiscard]] std::string read_changes(std::span<const std::byte> bytes);
  [[nodiscard]] std::string decode_vector(std::span<const std::byte> bytes, const Scope& scope);
  [[nodiscard]] std::string read_part(std::uint32_t round, std::span<const std::byte> bytes, bool is_difference);

  ExchangeChannel<T> channel_;
  ParameterKinds kinds_;
  Buffer<T> reference_;
  Payload<T> message_;
  std::uint32_t round_ = 0;
  Workspace workspace_;
};

extern template class ModelReader<float>;
extern template class ModelReader<double>;

}  // namespace fl
