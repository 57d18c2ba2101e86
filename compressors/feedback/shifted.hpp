// Compressed differences to a shift h_i that server and client both keep. EF21, DIANA and EF-BV are one rule with two parameters.
//
//   client  d = C(v - h),  h <- h + lambda d                            v = g, or a momentum of it (EF21-SGDM)
//   server  estimate = h_mean + nu * sum_i weight_i d_i,  h_mean <- h_mean + lambda * sum_i w_i d_i
// The estimate uses cohort weights and the state uses population weights, so h_mean stays the population mean of the h_i. Absent clients
// keep their h_i.
//   EF21    lambda = 1, nu = 1, C contractive        P. Richtarik, I. Sokolov, I. Fatkhullin, NeurIPS 2021
//   DIANA   lambda = 1/(1+omega), nu = 1, C unbiased K. Mishchenko, E. Gorbunov, M. Takac, P. Richtarik, 2019
//   EF-BV   both free                                L. Condat, K. Yi, P. Richtarik, NeurIPS 2022
#pragma once

#include <string>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/message/payload_ops.hpp"

namespace fl {

struct ShiftRule {
  double lambda = 1, nu = 1;
  double momentum = 1;        // eta of v <- (1-eta) v + eta g; 1 = no momentum
  bool has_momentum = false;  // whether a slot for v is kept
  bool dense_start = false;   // the first message of every client is uncompressed (and paid for)
};

template <class T>
class Shifted : public Feedback<T> {
 public:
  explicit Shifted(std::string name, ShiftRule rule) : name_(std::move(name)), rule_(rule) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    FeedbackPlan plan{.slots = {{.name = "shift", .owner = SlotOwner::client}, {.name = "shift_mean", .owner = SlotOwner::server}},
                      .moves = {{.slot = "shift", .factor = rule_.lambda}},
                      .means = {{.slot = "shift", .held_in = "shift_mean"}},
                      .host_walks = "",
                      .cost = FeedbackCost{.inputs = 2, .moved = 1, .server = 5}};
    if (!rule_.has_momentum) return plan;
    plan.slots.push_back({.name = "momentum", .owner = SlotOwner::client, .double_buffered = true});
    plan.in_place_slot = "momentum";
    plan.host_walks = "adds every gradient to its client's momentum";
    plan.cost->other = {.passes = 3, .operations = 3};
    return plan;
  }

  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = name_,
            .one_vector = true,
            .units = {Unit::gradient, Unit::update},
            .units_why = "compresses differences of gradients",
            .own_messages = true,
            .all_at_first = rule_.dense_start ? "\"compressed\"" : ""};
  }

  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t) const override {
    if (rule_.has_momentum) mix_momentum(round, block);
    Send<T> send;
    send.input.add(T(1), block.vectors[0]).add(T(-1), block.stored(round.state, "shift"));
    send.dense = rule_.dense_start && round.order.round == 1;
    return send;
  }

  void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>&) const override {
    if (rule_.has_momentum) round.state.swap("momentum", block.first + k);
  }

  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    const std::span<double> mean = round.state.slot("shift_mean");
    for (std::size_t j = 0; j < estimate.size(); ++j) {
      estimate[j] = mean[j] + rule_.nu * aggregates[0].estimate[j];
      mean[j] += rule_.lambda * aggregates[0].population[j];
    }
  }

 protected:
  std::string name_;

 private:
  // Computes v <- (1-eta) v + eta g in place of the local vector. A client's first v is its first g.
  void mix_momentum(const ClientRound<T>& round, const ClientBlock<T>& block) const {
    const BatchView<T> stored = block.stored(round.state, "momentum");
    const T eta = static_cast<T>(rule_.momentum), keep = T(1) - eta;
    for (std::uint32_t k = 0; k < block.K; ++k) {
      if (round.state.acknowledged(block.clients[k]) == 0) continue;
      const T* v = stored.row(k);
      T* g = block.vectors[0].row(k);
      for (std::size_t j = 0; j < round.P(); ++j) g[j] = keep * v[j] + eta * g[j];
    }
  }

  ShiftRule rule_;
};

}  // namespace fl
