// The rounds of a feedback outside of a run: the state of all clients and of the server, without a model and without local work.
//
//   send      client: the vector of a round becomes a message, by the feedback's prepare() and the operators of its channels
//   receive   server: the messages of the round become an estimate; then the state of the clients that sent moves
// The clients' half is the ClientProcess of a run, the server's its Reducer. Each client sends when its vector exists, so each one is a
// part of the round by itself: a wave with a cohort of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clients/host/block_runner.hpp"
#include "clients/host/client_process.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "python/src/operator.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "server/reducer.hpp"

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
  // The vector of the client that sends.
  class Given final : public GivenVectors<T> {
   public:
    explicit Given(std::size_t size) : size_(size) {}
    void set(std::span<const T> vector) { vector_ = vector; }
    [[nodiscard]] BatchView<const T> of(const ClientBlock<T>&) const override { return rows_view(vector_.data(), 1, size_); }

   private:
    std::size_t size_;
    std::span<const T> vector_;
  };
  // A message of this round that counts.
  struct Entry {
    RoundOrder order;  // of its wave
    MessageBatch<T> batch;
  };

  [[nodiscard]] RoundView<T> view(const RoundOrder& order) const { return {run_, order, {}}; }
  [[nodiscard]] ClientParts<T> parts() { return {run_, *method_.feedback, method_.exchange, *clients_, {shared_}, *runner_, pool_}; }
  [[nodiscard]] bool is_open() const { return !entries_.empty(); }
  void open(double step_size);
  void close(const RoundOrder& order, bool has_arrived);
  [[nodiscard]] Message message_of(const Entry& entry) const;
  void require_cohort(std::size_t size) const;
  void reduce(std::span<const double> weights, std::span<double> estimate);

  RunMethod<T> method_;
  FeedbackNeeds needs_;
  RunSettings run_;
  ThreadPool pool_{1};
  SharedState<T> shared_;
  ServerState<T> server_;
  Given given_;
  const std::unique_ptr<AggregationRule> sum_;
  std::unique_ptr<ClientState<T>> clients_;
  std::unique_ptr<BlockRunner<T>> runner_;
  std::unique_ptr<ClientProcess<T>> process_;
  std::unique_ptr<Reducer<T>> reducer_;
  RoundOrder order_;                        // of the open round, without its clients
  std::map<std::uint32_t, Entry> entries_;  // by client
  std::mutex mutex_;
};

extern template class FeedbackRounds<float>;
extern template class FeedbackRounds<double>;

}  // namespace fl::python
