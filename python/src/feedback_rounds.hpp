// The rounds of a feedback outside of a run: the state of all clients and of the server, without a model and without local work.
//
//   send      client: the vector of a round becomes a message, by the feedback's prepare() and the operators of its channels
//   receive   server: the messages of the round become an estimate; then the state of the clients that sent moves
// The steps and their order are those of Round, BlockRunner and ClientProcess, which compute a whole cohort at once; here each client sends
// when its vector exists. Tests compare the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fl_core/memory/thread_pool.hpp"
#include "python/src/operator.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "server/aggregator.hpp"

namespace fl::python {

// The operator of a channel; "" is every channel without one of its own.
struct ChannelOperator {
  std::string channel;
  std::string kind;
  Options options;
  ScopeKind scope = ScopeKind::model;
  std::int64_t bucket = 0;  // elements, for ScopeKind::bucket
};

struct FeedbackSettings {
  std::string kind;
  Options options;
  std::vector<ChannelOperator> operators;
  std::vector<std::vector<std::size_t>> tensors;  // of every client's vector, in order
  std::vector<double> weights;                    // w_i [N] of the clients; they sum to 1
  std::optional<Unit> unit;                       // of the vectors; unset: the first that the feedback accepts
  std::uint64_t seed = 1;                         // seeds.compressor
};

// Throws ConfigError for a feedback that works in the simulator alone, because it needs more than the clients' vectors.
void require_no_simulator(const std::string& kind, const FeedbackPlan& plan, const FeedbackNeeds& needs);

template <class T>
class FeedbackRounds {
 public:
  using Message = std::shared_ptr<Sent<T>>;

  // Throws ConfigError for operators that the feedback refuses, with the reason.
  explicit FeedbackRounds(const FeedbackSettings& settings);

  [[nodiscard]] std::size_t size() const { return run_.P; }
  [[nodiscard]] std::size_t num_clients() const { return run_.num_clients; }
  // Returns the round whose messages are sent next, or are being sent; from 1.
  [[nodiscard]] std::uint32_t round() const { return order_.round; }
  // Returns the clients whose messages of this round count, in ascending order.
  [[nodiscard]] std::vector<std::uint32_t> cohort() const;
  [[nodiscard]] std::string unit() const { return to_string(run_.unit); }
  [[nodiscard]] std::vector<std::string> channels() const;
  [[nodiscard]] Contract contract(std::size_t channel) const;

  // Makes the message of a client in this round from its vector [P]. `step_size` is that of the round. Throws Error for a vector that is
  // not finite, for a client that has sent in this round, and for another step size within a round; Overflow if the message of a finite
  // vector is not finite. Then nothing has been sent.
  [[nodiscard]] Message send(std::uint32_t client, std::span<const T> vector, double step_size, Input input = Input::unknown);
  // Forgets the message of a client in this round, which may send another one. Throws Error if there is none.
  void discard(std::uint32_t client);
  // Closes the round: writes the estimate [P] and moves the state. `weights` are those of the cohort, in its order; empty: w_i over their
  // sum. Throws Error if the feedback needs messages that are missing.
  void receive(std::span<const double> weights, std::span<double> estimate);

  // Writes the error memory of a client to out [P]. Returns false if the feedback has none.
  bool read_error(std::uint32_t client, std::span<T> out);
  // Writes or reads everything that is kept between rounds. Throws Error within a round.
  void persist(Archive& archive);

 private:
  // A message of this round, at its position: the row of the client's new state.
  struct Entry {
    std::uint32_t client = 0;
    std::shared_ptr<Sent<T>> sent;
    std::vector<Payload<T>*> payloads;  // by channel
    bool counts = false;                // else it failed or was discarded
  };
  // The vector of a client that sends.
  struct Given {
    std::span<const T> vector;
    BatchView<T> room;      // where the feedback expects it
    bool is_there = false;  // it was copied, or the operator has written there
  };

  [[nodiscard]] RoundView<T> view() const { return {run_, order_, {}}; }
  [[nodiscard]] ClientRound<T> client_round() { return {view(), *clients_, shared_}; }
  [[nodiscard]] ClientBlock<T> block_of(std::size_t position);
  [[nodiscard]] bool is_open() const;
  void open(double step_size);
  [[nodiscard]] std::size_t place_of(std::uint32_t client);
  void make_message(std::size_t position, std::span<const T> vector);
  void send_channel(const ClientBlock<T>& block, std::size_t channel, Given& given);
  void require_finite_message(const Entry& entry) const;
  [[nodiscard]] std::vector<std::size_t> positions() const;  // of the messages that count, by client
  void require_cohort(std::size_t size) const;
  void aggregate(std::span<const std::size_t> positions, std::span<const double> weights, std::span<double> estimate);
  void acknowledge(std::size_t position);

  RunMethod<T> method_;
  FeedbackNeeds needs_;
  RunSettings run_;
  ThreadPool pool_{1};
  Aggregator<T> aggregator_{pool_};
  SharedState<T> shared_;
  ServerState<T> server_;
  std::unique_ptr<ClientState<T>> clients_;
  std::shared_ptr<PayloadPool<T>> pool_of_payloads_ = std::make_shared<PayloadPool<T>>();
  Buffer<T> room_;    // [P] for a vector without a slot of its own
  RoundOrder order_;  // of the open round; its cohort is in the order of arrival until the round closes
  std::vector<Entry> entries_;
  double work_ = 1;
  std::mutex mutex_;
};

extern template class FeedbackRounds<float>;
extern template class FeedbackRounds<double>;

}  // namespace fl::python
