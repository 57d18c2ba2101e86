// Feedback: what keeps the error. It has two halves that hold the same numbers, and what both do alike.
//
//   client   prepare      the compressor's input as an affine form of the local vector and stored state, and the state rule
//            acknowledge  stored state moves, by the decoded message only, and only when it arrived
//   server   receive      turns the aggregated messages into an estimate, moving the server's own state alike
//   both     toss         the coin of a round
//            derive       moves shared slots by what both sides know, so that nobody has to send them
//
// A half gets the view of its side (fl_core/round/round_views.hpp), so a client's cannot name the server's state, nor the server's a
// client's. A Feedback object is immutable: everything it remembers lies in declared slots (fl_core/state/slot_spec.hpp), and each process
// may have its own.
#pragma once

#include <cstdint>
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

namespace fl {

// A channel of the message, in the order in which a client compresses them.
struct ChannelSpec {
  std::string name;
  std::string vector = "";  // the local vector that it is computed from; "" = the first
  std::uint32_t every = 1;  // it is used in rounds every, 2 every, ...: both sides know that, so a resting channel costs no header
};

// Client state that moves by the messages that arrive: state += factor c, for the messages of a channel that were not silent.
struct StateMove {
  std::string slot;
  std::size_t channel = 0;
  double factor = 1;
};

// What both sides know alike: the mean of the clients' rows of a slot, by population weights, and the server's slot that holds it. "" =
// none does, since the mean is zero.
struct SlotMean {
  std::string slot;
  std::string held_in = "";
};

// What a method fixes before it runs.
struct FeedbackPlan {
  std::vector<ChannelSpec> channels = {};  // none: one for each local vector, under its name
  std::vector<SlotSpec> slots = {};
  // The double-buffered slot in whose shadow the first local vector is computed, so that new state overwrites it; "" = none.
  std::string in_place_slot = "";
  // The client slot that holds the error memory, "" = none; what error_norm_sq measures.
  std::string error_slot = "";
  // The client slot that a client takes off the model it received before it computes, "" = none: CSER's clients have models of their own;
  // and the share of it that is taken off.
  std::string offset_slot = "";
  double offset_factor = 1;
  // State updates that the runner applies for each delivered message, before acknowledge().
  std::vector<StateMove> moves = {};
  // What the server keeps of the clients' state, and they of the server's. A method with slots on both sides names at least one; the tests
  // compare the two after a thousand rounds of messages.
  std::vector<SlotMean> means = {};
  // Whether receive() reads Aggregate::population; elsewhere it is then the sum by cohort weights.
  bool needs_population = true;
  // Whether receive() does nothing but copy Aggregate::estimate of the first channel: then it is not called.
  bool estimate_is_sum = false;
  // What the host does with clients' vectors, rows of state or messages in prepare(), after_compress() and acknowledge(), as the rest of a
  // sentence that begins with "the host"; "" = nothing: they build views, name moves and exchange rows. Vectors and state of a feedback
  // that says "" may lie where only a GPU reaches them. A feedback that says nothing is taken to read everything.
  std::string host_walks = "may read every vector and every row of state, because the feedback does not say what it reads";
};

// Returns the channels of a method whose local update computes these vectors, each with its vector.
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
  bool dense = false;  // this round the channel sends everything, uncompressed
};

template <class T>
class FL_API Feedback {
 public:
  virtual ~Feedback() = default;

  [[nodiscard]] virtual FeedbackPlan plan() const = 0;
  // What the scenario has to be for it: units, local work, operators, participation. check_needs() holds a scenario to it.
  [[nodiscard]] virtual FeedbackNeeds needs() const;
  // The largest step size under which the method's convergence theorem holds, for learning_rate = "theory"; or why there is none.
  [[nodiscard]] virtual TheoryStep theory_step_size(const TheoryFacts& facts) const;

  // Returns the coin of a round, RoundOrder::coin: a function of the run's seeds, so that every process tosses the same one.
  [[nodiscard]] virtual bool toss(const RunSettings& run, std::uint32_t round) const {
    (void)run, (void)round;
    return false;
  }
  // Moves the shared slots of SlotSync::derived, once the round's model has arrived and before anyone computes. It runs on every replica of
  // the shared state, those of the server and of clients that took part in the round before, and reads what both sides hold alone.
  virtual void derive(const RoundView<T>& round, SharedState<T>& shared) const { (void)round, (void)shared; }

  [[nodiscard]] virtual Send<T> prepare(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block,
                                        std::size_t channel) const = 0;
  // After the messages of a channel exist: masks, decisions to stay silent.
  virtual void after_compress(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t channel,
                              const Send<T>& sent, const Exchange<T>& exchange) const;
  // The message at block position k arrived. The round is over: shared slots of SlotSync::broadcast_at_close are those of this round.
  virtual void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k,
                           const Exchange<T>& exchange) const = 0;
  // estimate [P]: what the server steps along. Shared slots that are broadcast move here, at the server's replica.
  virtual void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const = 0;
};

}  // namespace fl
