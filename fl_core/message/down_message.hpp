// The model as bytes, as the server sends it to one client when a round opens. The ledger charges exactly these bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace fl {

enum class DownForm : std::uint8_t {
  dense,        // the full w, raw in the run's precision
  message,      // w as encoded by the downlink's operator
  changes,      // the coordinates that changed since a round, as a list
  differences,  // the compressed differences of all rounds since `since`; the client adds each of them
};
inline constexpr std::uint32_t kNumDownForms = 4;

struct DownMessage {
  DownForm form = DownForm::dense;
  std::uint32_t since = 0;                                           // the round of the w that the receiver holds; 0 = none
  std::vector<std::shared_ptr<const std::vector<std::byte>>> parts;  // one part; for differences, one part for each of `rounds`
  std::vector<std::uint32_t> rounds;

  [[nodiscard]] std::uint64_t bits() const {
    std::uint64_t bytes = 0;
    for (const auto& part : parts) bytes += part->size();
    return 8 * bytes;
  }
};

// Encodes the model for clients, depending on the version that each of them holds.
class ModelWriter {
 public:
  virtual ~ModelWriter() = default;
  // Returns the message for the client at this position of the round's cohort. Clients that hold the same version get the same message.
  [[nodiscard]] virtual const DownMessage& model_for(std::uint32_t position) = 0;
  // Returns the last round before this one whose model the client received; 0 = none.
  [[nodiscard]] virtual std::uint32_t held_by(std::uint32_t position) const = 0;
};

}  // namespace fl
