// A CohortRunner over the network: it sends the round's calls to peers as frames, and returns their answers as messages in the
// order of the cohort, whatever the order of arrival.
//
// A client whose peer is not there when a round opens is not asked. One whose answer does not arrive in time is absent: its message is
// refused in this phase and in all later ones, and its state does not move.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "net/server/error_mirror.hpp"
#include "net/server/peers.hpp"
#include "net/server/remote_round.hpp"
#include "net/server/reported_norms.hpp"
#include "net/server/traffic.hpp"

namespace fl::net {

template <class T>
class RemoteCohort final : public CohortRunner<T> {
 public:
  // The peers and what the request names outlive it. While it waits it asks goes_on(), and throws Interrupted when that returns false.
  RemoteCohort(Peers& peers, const ClientRequest<T>& request, const Presence& presence, std::function<bool()> goes_on, Traffic& traffic);

  // Offers the run to the peers when the first round begins, and waits until enough clients are hosted.
  [[nodiscard]] std::vector<std::uint8_t> present(std::uint32_t round, std::span<const std::uint32_t> cohort) override;
  void open_round(const RoundView<T>& round, const RoundOpening<T>& opening) override;
  void skip_round(std::uint32_t round) override;
  [[nodiscard]] MessageBatch<T> exchange(const RoundView<T>& round, int phase) override;
  void refuse(std::uint32_t position, const std::string& why) override;
  void learn_mean(std::size_t channel, int phase, std::span<const T> mean) override;
  void close_round(const RoundView<T>& round, std::span<const std::uint8_t> delivered) override;
  [[nodiscard]] std::span<const T> error_memory(std::uint32_t position) override { return received_.memories[position]; }
  // Writes or reads what the server knows of its clients. Their state is with their peers, which have it on disk when this returns.
  void persist(Archive& archive) override;
  // Tells peers from now on that a checkpoint of the last round is on disk.
  void note_checkpoint() { open_.saved_round = open_.round; }

  // Offers the run to the peers if no round has done so, and returns the round that was played last; 0 = none yet.
  [[nodiscard]] std::uint32_t begin();

  // Returns the probe with which measures ask these clients for numbers.
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
    void add_kept_moves(std::span<const std::uint8_t> delivered, std::span<double> mean) override;
    void read_kept_move(std::uint32_t position, std::span<double> move) override;
    void put_kept(std::uint32_t, T*) override {}

   private:
    RemoteCohort& cohort_;
  };
  void begin_run();
  void wait_for_peers(std::size_t wanted);
  [[nodiscard]] std::vector<HostId> gather(std::uint32_t round, std::span<const std::uint32_t> cohort);
  [[nodiscard]] std::string why_nobody(std::uint32_t round, std::span<const std::uint32_t> cohort, std::span<const HostId> hosts) const;
  [[nodiscard]] int num_stages() const { return 1 + request_.method.exchange.num_phases() + (asks_for_memory() ? 1 : 0); }
  [[nodiscard]] bool asks_for_moves(int phase) const;
  void read_move(std::size_t first, std::size_t position);
  [[nodiscard]] bool asks_for_memory() const { return rule_.replaces() || mirror_ != nullptr; }
  [[nodiscard]] Wait wait_until_stage(int stage) const;
  // The decision of the run's delivery about a stage: when it closes, and whose messages count [M].
  struct Decision {
    std::optional<Clock::time_point> closes_at;
    std::vector<std::uint8_t> counts;
  };
  [[nodiscard]] Decision decide(int stage, const Completions& completed) const;
  [[nodiscard]] Answers collect_phase(int phase) const;
  void expect_phase(int phase);
  void take_messages(const RoundView<T>& round, Answers answers, int phase);
  void move_to_refused(std::size_t position);
  [[nodiscard]] double most_work(std::uint32_t client) const;
  // Returns why a frame is no message, or "".
  [[nodiscard]] std::string read_update(const Frame& frame, ClientMessage<T>& message) const;
  // Reads the norms of a message. Returns why a frame is no list of norms, or "".
  [[nodiscard]] std::string read_norms(const Frame& frame, StatedNorms& norms) const;
  void take_norms(const RoundView<T>& round, int phase, std::vector<StatedNorms> norms);
  void collect_memories();
  void wait_for_acknowledgements();
  [[nodiscard]] std::string read_memory(const Frame& frame, std::vector<T>& memory) const;

  Peers& peers_;
  const ClientRequest<T> request_;
  Presence presence_;
  std::function<bool()> goes_on_;
  AbsenceRule rule_;
  std::unique_ptr<ErrorMirror<T>> mirror_;  // where a measure asks for the sum of memories
  Traffic& traffic_;
  std::vector<std::uint32_t> last_heard_;  // [N] round of each client's last message that counted; 0 = none
  std::vector<std::uint32_t> closed_;      // [N] from a checkpoint: the last closed round of each client; empty = a new run
  std::vector<KeptRounds> kept_;           // from a checkpoint: rounds that their peers may not have
  bool has_begun_ = false;
  Clock::time_point last_hosted_{};  // when a client was hosted
  RemoteRound open_;
  CohortAnswers<T> received_;
  Probe probe_{*this};
};

extern template class RemoteCohort<float>;
extern template class RemoteCohort<double>;

}  // namespace fl::net
