// The cohort of each round behind a hub: what the round says to a CohortRunner goes out as frames, and what the peers answer comes back as
// messages, in the order of the cohort whatever the order of arrival.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "net/error_mirror.hpp"
#include "net/peer_hub.hpp"
#include "net/traffic.hpp"

namespace fl::net {

template <class T>
class RemoteCohort final : public CohortRunner<T> {
 public:
  // The hub and what the request names outlive it. While it waits it asks goes_on(), and throws Interrupted when that returns false.
  RemoteCohort(PeerHub& hub, const ClientRequest<T>& request, std::function<bool()> goes_on, Traffic& traffic);

  void open_round(const RoundView<T>& round, const RoundOpening<T>& opening) override;
  void skip_round(std::uint32_t round) override;
  std::span<const ClientMessage<T>> exchange(const RoundView<T>& round, int phase) override;
  void refuse(std::uint32_t position, const std::string& why) override;
  [[nodiscard]] const Payload<T>* payload(std::size_t channel, std::uint32_t position) const override;
  [[nodiscard]] std::span<const T> statistics(std::uint32_t position) const override;
  void learn_mean(std::size_t channel, int phase, std::span<const T> mean) override;
  void close_round(const RoundView<T>& round, std::span<const std::uint8_t> delivered) override;
  [[nodiscard]] std::span<const T> error_memory(std::uint32_t position) override { return received_.memories[position]; }
  void persist(Archive& archive) override;

  // What measures ask of these clients.
  [[nodiscard]] ClientProbe<T>& probe() { return probe_; }

 private:
  class Probe final : public ClientProbe<T> {
   public:
    explicit Probe(RemoteCohort& cohort) : cohort_(cohort) {}
    void keep_updates(bool keep) override;
    [[nodiscard]] BatchView<const T> updates(std::size_t, std::size_t) const override { return {}; }
    [[nodiscard]] std::span<const ClientMeasures> measures() const override { return cohort_.received_.norms; }
    [[nodiscard]] std::span<const OperatorError> operator_errors() const override { return cohort_.received_.operator_errors; }
    [[nodiscard]] std::vector<double> error_memory_sum(std::uint32_t round, std::span<const double> replacement) override;
    void add_statistics_moves(std::span<const std::uint8_t>, std::span<double>) override {}
    void put_own_statistics(std::uint32_t, T*) override {}

   private:
    RemoteCohort& cohort_;
  };
  static constexpr int kNoPhase = -1;
  // The round that is open, or was last.
  struct Open {
    std::uint32_t round = 0;  // 0 = none yet
    bool is_measured = false;
    int awaited_phase = kNoPhase;
    std::vector<std::uint32_t> cohort;
    std::vector<PeerId> hosts;                          // of the cohort, each once
    std::vector<std::vector<std::uint32_t>> positions;  // in the cohort, of each host's clients
  };
  // What its clients have sent, by position.
  struct Received {
    std::vector<Frame> frames;  // of the phase; behind them, those of norms
    std::vector<ClientMessage<T>> messages;
    std::vector<ClientMeasures> norms;
    std::vector<OperatorError> operator_errors;
    std::vector<std::vector<T>> memories;  // [M,P] after the round
  };

  void find_hosts();
  void expect_phase(int phase);
  // Returns why a frame is no message, or "".
  [[nodiscard]] std::string read_update(const Frame& frame, ClientMessage<T>& message) const;
  void read_norms(const Frame& frame, std::size_t position);
  void collect_memories();

  PeerHub& hub_;
  std::function<bool()> goes_on_;
  const RunMethod<T>& method_;
  const RunSettings& run_;
  const SharedState<T>& shared_;
  AbsenceRule rule_;
  std::unique_ptr<ErrorMirror<T>> mirror_;  // where a measure asks for the sum of memories
  Traffic& traffic_;
  std::vector<std::uint32_t> last_heard_;  // [N] round of each client's last message that counted; 0 = none
  Open open_;
  Received received_;
  Probe probe_{*this};
};

extern template class RemoteCohort<float>;
extern template class RemoteCohort<double>;

}  // namespace fl::net
