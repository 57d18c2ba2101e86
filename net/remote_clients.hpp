// Clients on peers, behind the interface of a run: calls of the round to a CohortRunner are sent as frames, and the peers' answers become
// messages in the order of the cohort, independent of their order of arrival.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "clients/absence.hpp"
#include "clients/memory_sum.hpp"
#include "net/peer_hub.hpp"
#include "scenarios/experiment/run_clients.hpp"

namespace fl::net {

// Payload bytes as the ledger counts them: a frame for several clients of a peer counts for each of them.
struct Traffic {
  std::uint64_t up_bytes = 0, down_bytes = 0;
  std::uint64_t measured_bytes = 0;  // uplink, for measures only: charged to no client
  std::uint64_t refused_bytes = 0;   // uplink, of refused messages
};

template <class T>
class RemoteClients final : public RunClients<T>, public CohortRunner<T>, public ClientProbe<T> {
 public:
  // Offers the run to the hub's peers and waits until they host all clients. The hub must outlive this object. Throws ConfigError for
  // measures that require simulated clients in this process, and Interrupted if goes_on() returns false.
  RemoteClients(PeerHub& hub, const ClientRequest<T>& request, std::function<bool()> goes_on, Traffic& traffic);
  ~RemoteClients() override;

  // Functions of RunClients
  [[nodiscard]] CohortRunner<T>& clients() override { return *this; }
  [[nodiscard]] ClientProbe<T>& probe() override { return *this; }
  void prepare(std::span<const double>) override {}  // each peer computes the optimum itself
  void record_into(SampleRecorder*) override {}
  [[nodiscard]] std::string page_file() override { return {}; }
  void commit_checkpoint() override {}
  void require_nothing_after(std::uint64_t) const override {}

  // Functions of CohortRunner
  void open_round(const RoundView<T>& round, const RoundOpening<T>& opening) override;
  void skip_round(std::uint32_t round) override;
  std::span<const ClientMessage<T>> exchange(const RoundView<T>& round, int phase) override;
  void refuse(std::uint32_t position, const std::string& why) override;
  [[nodiscard]] const Payload<T>* payload(std::size_t channel, std::uint32_t position) const override;
  [[nodiscard]] std::span<const T> statistics(std::uint32_t position) const override;
  void learn_mean(std::size_t channel, int phase, std::span<const T> mean) override;
  void close_round(const RoundView<T>& round, std::span<const std::uint8_t> delivered) override;
  [[nodiscard]] std::span<const T> error_memory(std::uint32_t position) override { return memories_[position]; }
  void persist(Archive& archive) override;

  // Functions of ClientProbe
  void keep_updates(bool keep) override;
  [[nodiscard]] BatchView<const T> updates(std::size_t, std::size_t) const override { return {}; }
  [[nodiscard]] std::span<const ClientMeasures> measures() const override { return norms_; }
  [[nodiscard]] std::span<const OperatorError> operator_errors() const override { return operator_errors_; }
  [[nodiscard]] std::vector<double> error_memory_sum(std::uint32_t round, std::span<const double> replacement) override;
  void add_statistics_moves(std::span<const std::uint8_t>, std::span<double>) override {}
  void put_own_statistics(std::uint32_t, T*) override {}

 private:
  // The error memories of all clients, as reconstructed from their messages, for the measured sum of memories.
  struct Memories {
    Memories(const AbsenceRule& rule, const ClientRequest<T>& request);
    ClientState<T> state;
    Absence<T> absence;
    MemorySum<T> sum;
  };

  void find_hosts();
  void expect_phase(int phase);
  // The data that opens a round in addition to models, as bytes.
  struct Sections {
    std::shared_ptr<const Bytes> initial, missed, broadcast, replacement;
  };
  void add_models(const std::vector<std::uint32_t>& positions, ModelWriter& writer, wire::Open& open,
                  std::vector<std::shared_ptr<const Bytes>>& payload);
  void add_sections(const std::vector<std::uint32_t>& positions, const ModelWriter& writer, bool replaces, const Sections& sections,
                    wire::Open& open, std::vector<std::shared_ptr<const Bytes>>& payload);
  [[nodiscard]] std::shared_ptr<const Bytes> weights_of(std::span<const T> vector) const;
  // Returns the reason why a frame is not a valid message, or "".
  [[nodiscard]] std::string read_update(const Frame& frame, ClientMessage<T>& message) const;
  void read_norms(const Frame& frame, std::size_t position);

  PeerHub& hub_;
  std::function<bool()> goes_on_;
  const RunMethod<T>& method_;
  const RunSettings& run_;
  const SharedState<T>& shared_;
  AbsenceRule rule_;
  bool asks_for_memories_ = false;
  std::unique_ptr<Memories> mirror_;  // created if a measure needs the sum of memories

  static constexpr int kNoPhase = -1;

  Traffic& traffic_;
  std::vector<std::uint32_t> last_heard_;  // [N] round of each client's last counted message; 0 = none
  std::uint32_t round_ = 0, before_ = 0;   // the current or last round, 0 = none yet; and the round before it
  int awaited_phase_ = kNoPhase;
  bool is_measured_ = false;
  std::vector<std::uint32_t> cohort_;
  std::vector<PeerId> hosts_;                          // of the cohort, without duplicates
  std::vector<std::vector<std::uint32_t>> positions_;  // in the cohort, of each host's clients
  std::vector<Frame> frames_;                          // [M] of the current phase
  std::vector<ClientMessage<T>> messages_;             // [M]
  std::vector<ClientMeasures> norms_;
  std::vector<OperatorError> operator_errors_;
  std::vector<std::vector<T>> memories_;  // [M,P] after the round
};

extern template class RemoteClients<float>;
extern template class RemoteClients<double>;

// Creates the clients behind a hub, for MachineOptions::source.
class FL_API RemoteSource final : public ClientSource {
 public:
  RemoteSource(PeerHub& hub, std::function<bool()> goes_on);
  [[nodiscard]] std::unique_ptr<RunClients<float>> clients_of(const ClientRequest<float>& request) override;
  [[nodiscard]] std::unique_ptr<RunClients<double>> clients_of(const ClientRequest<double>& request) override;
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }

 private:
  PeerHub& hub_;
  std::function<bool()> goes_on_;
  Traffic traffic_;
};

}  // namespace fl::net
