// Everything a method remembers between rounds, declared by name: so it can be sized, checkpointed and charged for.
//
//   client  one vector per client [N,L], moved only by acknowledged messages; touched pages alone cost memory
//   cohort  one vector that server and clients hold alike; broadcast every round, or derived by those who took part
//   server  one vector in double that never leaves the server
//
// A double-buffered client slot has a shadow row per cohort position: the round writes the new state there, acknowledgement swaps the
// two rows, loss forgets the shadow. Memory = (clients + cohort) x L.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fl_core/archive.hpp"
#include "fl_core/batch_view.hpp"
#include "fl_core/buffer.hpp"
#include "fl_core/error.hpp"

namespace fl {

enum class SlotOwner { client, cohort, server };

// How a cohort slot reaches the clients, and so what it costs on the downlink.
enum class SlotSync {
  broadcast,  // changes at the server: sent to every member of the cohort each round
  derived,    // clients compute it from what they receive anyway; sent only to those who missed the round before
};

struct SlotSpec {
  std::string name;
  SlotOwner owner = SlotOwner::client;
  bool double_buffered = false;       // client slots only
  SlotSync sync = SlotSync::derived;  // cohort slots only
  std::size_t length = 0;             // 0 = P
};

template <class T>
class StateTable {
 public:
  StateTable(std::size_t num_clients, std::size_t max_cohort, std::size_t P)
      : num_clients_(num_clients), max_cohort_(max_cohort), P_(P), acknowledged_(num_clients, 0) {}

  void declare(const SlotSpec& spec) {
    if (spec.owner == SlotOwner::cohort) {
      cohort_specs_.push_back(spec);
      cohort_[spec.name] = Buffer<T>(length_of(spec));
    } else if (spec.owner == SlotOwner::server) {
      server_[spec.name] = Buffer<double>(length_of(spec));
    } else {
      declare_client(spec);
    }
  }

  // Says which clients the positions of this round are; call before any view is taken.
  void open_round(std::span<const std::uint32_t> cohort) {
    cohort_ids_ = cohort;
    for (auto& [_, slot] : client_)
      for (std::size_t i = 0; i < cohort.size(); ++i) slot.rows[i] = slot.row_of_client[cohort[i]];
  }

  // Stored state of the cohort's members at positions first .. first+count-1: [count,L].
  [[nodiscard]] BatchView<T> stored(const std::string& name, std::uint32_t first, std::uint32_t count) {
    ClientSlot& slot = client_slot(name);
    return {slot.pool.data(), slot.rows.data() + first, count, slot.length, slot.stride};
  }
  // Their shadow rows, free to be written until the round ends.
  [[nodiscard]] BatchView<T> shadow(const std::string& name, std::uint32_t first, std::uint32_t count) {
    ClientSlot& slot = client_slot(name);
    return {slot.pool.data(), slot.shadow_rows.data() + first, count, slot.length, slot.stride};
  }
  // One client's stored vector, whoever is in the cohort: [L].
  [[nodiscard]] std::span<T> of_client(const std::string& name, std::uint32_t client) {
    ClientSlot& slot = client_slot(name);
    return {slot.pool.data() + slot.row_of_client[client] * slot.stride, slot.length};
  }
  // The message at this position has arrived: its shadow row becomes the client's state.
  void swap(const std::string& name, std::uint32_t position) {
    ClientSlot& slot = client_slot(name);
    std::swap(slot.row_of_client[cohort_ids_[position]], slot.shadow_rows[position]);
    slot.rows[position] = slot.row_of_client[cohort_ids_[position]];
  }

  // The round of a client's last acknowledged message; 0 = none yet.
  [[nodiscard]] std::uint32_t acknowledged(std::uint32_t client) const { return acknowledged_[client]; }
  void set_acknowledged(std::uint32_t client, std::uint32_t round) { acknowledged_[client] = round; }

  [[nodiscard]] std::span<T> cohort(const std::string& name) { return cohort_.at(name).span(); }
  [[nodiscard]] std::span<double> server(const std::string& name) { return server_.at(name).span(); }
  [[nodiscard]] bool has_client_slot(const std::string& name) const { return client_.contains(name); }
  [[nodiscard]] const std::vector<SlotSpec>& cohort_specs() const { return cohort_specs_; }
  [[nodiscard]] std::size_t num_clients() const { return num_clients_; }
  [[nodiscard]] std::size_t P() const { return P_; }
  [[nodiscard]] std::size_t length_of(const SlotSpec& spec) const { return spec.length == 0 ? P_ : spec.length; }

  // Client rows that are all zero, as those of clients that never took part, take a byte each.
  void persist(Archive& archive) {
    archive.section("state");
    for (auto& [name, slot] : client_) {
      archive.section(name);
      archive.sparse_rows(slot.pool.span(), slot.stride);
      archive.array(std::span(slot.row_of_client));
      archive.array(std::span(slot.shadow_rows));
    }
    for (auto& [name, slot] : cohort_) {
      archive.section(name);
      archive.array(slot.span());
    }
    for (auto& [name, slot] : server_) {
      archive.section(name);
      archive.array(slot.span());
    }
    archive.array(std::span(acknowledged_));
  }

  // Bytes that the declared slots may come to occupy.
  [[nodiscard]] std::size_t size_bytes() const {
    std::size_t bytes = 0;
    for (const auto& [_, slot] : client_) bytes += slot.pool.size() * sizeof(T);
    for (const auto& [_, slot] : cohort_) bytes += slot.size() * sizeof(T);
    for (const auto& [_, slot] : server_) bytes += slot.size() * sizeof(double);
    return bytes;
  }

 private:
  struct ClientSlot {
    std::size_t length = 0;
    std::size_t stride = 0;                    // a row begins on a cache line: vector loads that straddle two are slower
    Buffer<T> pool;                            // [N + shadows, stride]
    std::vector<std::uint32_t> row_of_client;  // [N]
    std::vector<std::uint32_t> shadow_rows;    // [max_cohort]
    std::vector<std::uint32_t> rows;           // [max_cohort] of this round's members
  };
  ClientSlot& client_slot(const std::string& name) {
    const auto it = client_.find(name);
    if (it == client_.end()) throw Error("no client slot named '" + name + "' was declared");
    return it->second;
  }
  void declare_client(const SlotSpec& spec) {
    ClientSlot slot;
    slot.length = length_of(spec);
    slot.stride = aligned_stride<T>(slot.length);
    const std::size_t shadows = spec.double_buffered ? max_cohort_ : 0;
    slot.pool = Buffer<T>((num_clients_ + shadows) * slot.stride);
    for (std::uint32_t i = 0; i < num_clients_; ++i) slot.row_of_client.push_back(i);
    for (std::uint32_t i = 0; i < shadows; ++i) slot.shadow_rows.push_back(static_cast<std::uint32_t>(num_clients_) + i);
    slot.rows.resize(max_cohort_);
    client_[spec.name] = std::move(slot);
  }

  std::size_t num_clients_, max_cohort_, P_;
  std::map<std::string, ClientSlot> client_;
  std::map<std::string, Buffer<T>> cohort_;
  std::map<std::string, Buffer<double>> server_;
  std::vector<SlotSpec> cohort_specs_;
  std::span<const std::uint32_t> cohort_ids_;
  std::vector<std::uint32_t> acknowledged_;
};

}  // namespace fl
