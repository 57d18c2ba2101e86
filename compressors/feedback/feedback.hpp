// A feedback is the method that keeps the compression error. It has a client half and a server half, which hold the same numbers, and
// functions that both halves call.
//
//   client   prepare      returns the compressor's input as an affine form of the local vector and stored state, and the state rule
//            acknowledge  updates stored state by the decoded message alone, and only if the message arrived
//   server   receive      turns the aggregated messages into an estimate and updates the server's state in the same way
//   both     toss         returns the coin of a round
//            derive       updates shared slots from data that both sides hold, so that the slots need not be sent
//
// Each half receives the view of its side (fl_core/round/round_views.hpp), so client code cannot access the server's state, and server code
// cannot access a client's state. A Feedback object is immutable. All its state lies in declared slots (fl_core/state/slot_spec.hpp), and
// each process may have its own object.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/exchange.hpp"
#include "compressors/feedback/needs.hpp"
#include "compressors/feedback/theory.hpp"
#include "fl_core/config/options.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/round/round_views.hpp"
#include "fl_core/round/stated_cost.hpp"

namespace fl {

// A channel of the message. A client compresses the channels in this order.
struct ChannelSpec {
  std::string name;
  std::string vector = "";  // the local vector that it is computed from; "" = the first
  std::uint32_t every = 1;  // used in rounds every, 2 every, ...; both sides know this, so an unused channel costs no header
};

// An update of client state by the messages that arrive: state += factor c, for the messages of a channel that were not silent.
struct StateMove {
  std::string slot;
  std::size_t channel = 0;
  double factor = 1;
};

// The mean of the clients' rows of a slot by population weights, which both sides know, and the server's slot that holds it. "" means that
// no slot holds it, because the mean is zero.
struct SlotMean {
  std::string slot;
  std::string held_in = "";
};

// The cost of a feedback in a round, in vectors [P] of all of its channels together.
struct FeedbackCost {
  double inputs = 1;     // vectors and slots that the affine inputs read
  double written = 0;    // slots and vectors that are written with the messages
  double moved = 0;      // slots to which a message is added, when it has arrived
  double server = 0;     // vectors that receive() reads or writes
  EntryCost other = {};  // further passes over the client's vectors, per entry

  // Return the cost per entry: of the messages, of what follows when they have arrived, and of the server's receive().
  [[nodiscard]] EntryCost of_messages() const { return EntryCost{inputs + written, 2 * inputs + written} + other; }
  [[nodiscard]] EntryCost of_arrival() const { return {3 * moved, 2 * moved}; }
  [[nodiscard]] EntryCost of_server() const { return {server, server}; }
};

// The properties that a method fixes before the run.
struct FeedbackPlan {
  std::vector<ChannelSpec> channels = {};  // empty: one per local vector, with the vector's name
  std::vector<SlotSpec> slots = {};
  // The double-buffered slot whose spare buffer receives the first local vector, so that new state overwrites it; "" = none.
  std::string in_place_slot = "";
  // The client slot that holds the error memory, which error_norm_sq measures; "" = none.
  std::string error_slot = "";
  // The client slot that is subtracted from the received model before the client computes, and the factor of the subtraction; "" = none.
  // CSER uses it because each of its clients has its own model.
  std::string offset_slot = "";
  double offset_factor = 1;
  // State updates that the runner applies for each delivered message, before acknowledge().
  std::vector<StateMove> moves = {};
  // The means of client state that the server keeps, and the reverse. A method with slots on both sides names at least one. The tests
  // compare the two sides after a thousand rounds of messages.
  std::vector<SlotMean> means = {};
  // Whether receive() reads Aggregate::population. If false, `population` is the sum by cohort weights.
  bool needs_population = true;
  // Whether receive() only copies Aggregate::estimate of the first channel. If true, it is not called.
  bool estimate_is_sum = false;
  // The host's accesses to clients' vectors, rows of state or messages in prepare(), after_compress() and acknowledge(), as the rest of a
  // sentence that begins with "the host". "" means no access: the functions only build views, name moves and exchange rows, and vectors and
  // state may then lie in memory that only a GPU reaches. A feedback that does not set this field is assumed to read everything.
  std::string host_walks = "may read every vector and every row of state, because the feedback does not say what it reads";
  // No value: not stated.
  std::optional<FeedbackCost> cost = std::nullopt;
};

// Returns the channels of a method whose local update computes these vectors. Each channel names its vector.
[[nodiscard]] FL_API std::vector<ChannelSpec> channels_of(const FeedbackPlan& plan, const std::vector<std::string>& local_vectors);

// Sums over the cohort of one channel's decoded messages, [P] each.
struct Aggregate {
  std::span<const double> estimate;    // sum_i cohort_weight_i c_i
  std::span<const double> population;  // sum_i population_weight_i c_i
};

template <class T>
struct Send {
  Affine<T> input;
  StateWrite<T> state;
  bool dense = false;  // the channel sends everything uncompressed in this round
};

template <class T>
class FL_API Feedback {
 public:
  virtual ~Feedback() = default;

  [[nodiscard]] virtual FeedbackPlan plan() const = 0;
  // Returns the requirements on the scenario: units, local work, operators, participation. check_needs() checks them.
  [[nodiscard]] virtual FeedbackNeeds needs() const;
  // Returns the largest step size for which the method's convergence theorem holds, for learning_rate = "theory", or the reason why there
  // is none.
  [[nodiscard]] virtual TheoryStep theory_step_size(const TheoryFacts& facts) const;
  // Returns the best step size by an analysis that worst cases attain, for learning_rate = "tight", or the reason why there is none.
  [[nodiscard]] virtual TheoryStep tight_step_size(const TheoryFacts& facts) const;

  // Returns the coin of a round, RoundOrder::coin. It is a function of the run's seeds, so that every process gets the same coin.
  [[nodiscard]] virtual bool toss(const RunSettings& run, std::uint32_t round) const {
    (void)run, (void)round;
    return false;
  }
  // Updates the shared slots of SlotSync::derived, after the round's model has arrived and before any client computes. It runs on every
  // replica of the shared state, that is on the server and on clients that took part in the round before, and reads only data that both
  // sides hold.
  virtual void derive(const RoundView<T>& round, SharedState<T>& shared) const { (void)round, (void)shared; }

  [[nodiscard]] virtual Send<T> prepare(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block,
                                        std::size_t channel) const = 0;
  // Runs after the messages of a channel exist: applies masks and decides which clients stay silent.
  virtual void after_compress(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t channel,
                              const Send<T>& sent, const Exchange<T>& exchange) const;
  // Updates state after the message at block position k arrived. The round is over: shared slots of SlotSync::broadcast_at_close hold the
  // values of this round.
  virtual void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k,
                           const Exchange<T>& exchange) const = 0;
  // Computes the estimate [P] along which the server steps. Updates broadcast slots in the server's replica.
  virtual void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const = 0;
};

}  // namespace fl
