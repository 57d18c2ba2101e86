// What a client is sent of the model when a round opens, as bytes: what the ledger charges for it, no more and no less.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace fl {

enum class DownForm : std::uint8_t {
  dense,        // all of w, raw in the run's precision
  message,      // w as the downlink's operator writes it
  changes,      // the coordinates that changed since a round, in the form of a list
  differences,  // the compressed differences of all rounds since, each to be added
};
inline constexpr std::uint32_t kNumDownForms = 4;

struct DownMessage {
  DownForm form = DownForm::dense;
  std::uint32_t since = 0;                                           // the round whose w the receiver holds; 0 = none
  std::vector<std::shared_ptr<const std::vector<std::byte>>> parts;  // one; of differences, one for each of `rounds`
  std::vector<std::uint32_t> rounds;

  [[nodiscard]] std::uint64_t bits() const {
    std::uint64_t bytes = 0;
    for (const auto& part : parts) bytes += part->size();
    return 8 * bytes;
  }
};

// Writes the model for clients, by what each of them holds.
class ModelWriter {
 public:
  virtual ~ModelWriter() = default;
  // What the client at this position of the round's cohort is sent. Clients that hold the same are sent the same.
  [[nodiscard]] virtual const DownMessage& model_for(std::uint32_t position) = 0;
  // The last round whose model that client was sent before this one; 0 = none.
  [[nodiscard]] virtual std::uint32_t held_by(std::uint32_t position) const = 0;
};

}  // namespace fl
