// Writes what each peer is sent when a round opens: the order, its members of the cohort, and what each of them misses.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fl_core/round/cohort_runner.hpp"
#include "net/server/traffic.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

// Earlier rounds, as far as an opening refers to them.
struct RoundHistory {
  std::uint32_t before = 0, saved = 0;          // the last round that was played, and that of the last checkpoint; 0 = none
  std::span<const std::uint32_t> last_heard{};  // [N] round of each client's last message that counted
};

template <class T>
class OpeningWriter {
 public:
  // For one round; all outlive it. What is written is added to the traffic.
  OpeningWriter(const RoundView<T>& round, const RoundOpening<T>& opening, const SharedState<T>& shared, const RoundHistory& history,
                Traffic& traffic);

  // Returns the frame for a peer that hosts the clients at these positions of the cohort.
  [[nodiscard]] OutgoingFrame frame_for(const std::vector<std::uint32_t>& positions);

 private:
  using Payload = std::vector<std::shared_ptr<const Bytes>>;
  // The parts of a round's opening beside models, as bytes.
  struct Sections {
    std::shared_ptr<const Bytes> initial, missed, broadcast, replacement;
  };
  void add_models(const std::vector<std::uint32_t>& positions, wire::Open& open, Payload& payload);
  void add_sections(const std::vector<std::uint32_t>& positions, wire::Open& open, Payload& payload);

  const RoundView<T>& round_;
  const RoundOpening<T>& opening_;
  RoundHistory history_;
  Traffic& traffic_;
  Sections sections_;
};

extern template class OpeningWriter<float>;
extern template class OpeningWriter<double>;

}  // namespace fl::net
