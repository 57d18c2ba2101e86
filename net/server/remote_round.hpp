// A round whose clients are with peers: who is asked, whose messages still count, and the answers.
#pragma once

#include <cstdint>
#include <vector>

#include "fl_core/round/client_measures.hpp"
#include "fl_core/round/cohort_runner.hpp"
#include "net/server/peers.hpp"
#include "net/server/presence.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

// The round that is open, or was last.
struct RemoteRound {
  static constexpr int kNoPhase = -1;

  std::uint32_t round = 0;        // 0 = none yet
  std::uint32_t saved_round = 0;  // of the last checkpoint
  bool is_measured = false;
  int awaited_phase = kNoPhase;
  RoundTimer timer;
  std::vector<std::uint32_t> cohort;
  std::vector<HostId> host_of;                        // [M] of each client
  std::vector<std::uint8_t> is_out;                   // [M] 1 = the client's message does not count
  std::vector<std::uint8_t> is_absent;                // [M] 1 = it did not arrive in time
  std::vector<HostId> hosts;                          // of the cohort, each once
  std::vector<std::vector<std::uint32_t>> positions;  // in the cohort, of each host's clients

  // Opens a round. host_of has been set.
  void open(const RoundOrder& order);
};

// The answers of its clients, by position.
template <class T>
struct CohortAnswers {
  std::vector<Frame> frames;  // of the phase; behind them, those of norms and of moves
  std::vector<ClientMessage<T>> messages;
  std::vector<ClientMeasures> norms;
  std::vector<OperatorError> operator_errors;
  std::vector<std::vector<double>> moves;  // [M] of the parameters that clients keep, in double
  std::vector<std::vector<T>> memories;    // [M,P] after the round; empty = it did not arrive in time
};

}  // namespace fl::net
