// The state that clients keep between rounds: slots of owner `client`, one vector per client [N,L], and the round of each client's last
// acknowledged message. Only acknowledged messages change it, and only touched pages use memory. Server code cannot access it.
//
// A double-buffered slot has a shadow row per cohort position: the round writes the new state there, acknowledgement swaps the two rows,
// and loss discards the shadow.
//
// Rows are stored in a pool, and a view maps positions to rows. If memory is bounded (StatePaging) and the rows of all clients do not fit,
// the pool holds the rows of some clients (in frames, fl_core/state/state_pager.hpp) and a file holds the others. Otherwise each client
// has the frame of its own number, and gets a row when it is first in a cohort: the rows in use are next to each other, so that huge pages
// hold nothing else. Memory = (frames in use + cohort) x L per slot. GPU memory is always bounded, without a setting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/memory/batch_view.hpp"
#include "fl_core/state/archive.hpp"
#include "fl_core/state/slot_rows.hpp"
#include "fl_core/state/slot_spec.hpp"

namespace fl {

class StatePager;
struct StatePaging;
inline constexpr std::uint64_t kNoBound = ~std::uint64_t{0};  // bytes

template <class T>
class FL_API ClientState {
 public:
  // Keeps all rows in memory.
  ClientState(std::size_t num_clients, std::size_t max_cohort, std::size_t P);
  // Bounds the slots by paging.memory_bytes, or places them in memory that a GPU shares; bound_memory() must follow their declaration.
  // `likely_cohort` is the expected maximum cohort size.
  ClientState(std::size_t num_clients, std::size_t max_cohort, std::size_t P, const StatePaging& paging, std::size_t likely_cohort,
              Device memory = Device::cpu);
  ~ClientState();

  // Lets this number of rounds be open at the same time, each with clients of its own: waves 0, 1, ... Call it before the first
  // declaration. Their rows have to fit into memory.
  void allow_waves(std::size_t most) { num_waves_ = most; }
  void declare(const SlotSpec& spec);
  // Bounds the memory; call it after the last declaration. `room`: bytes of a GPU that client slots may use. Throws ConfigError
  // (memory_bytes) or DeviceError (room), with the required minimum, if memory does not suffice for a round.
  void bound_memory(std::uint64_t room = kNoBound);

  // Selects the wave to which everything refers that has cohort positions. The first one is selected at the beginning.
  void select(std::size_t wave) { now_ = wave; }
  // Assigns the clients of the wave's round to cohort positions; call it before taking any view. Loads `next_cohort`, if known, in the
  // background. Throws StoreError if rows cannot be read from or written to their file.
  void open_round(std::span<const std::uint32_t> cohort, std::span<const std::uint32_t> next_cohort = {});
  // Returns whether open_round() makes use of the next cohort.
  [[nodiscard]] bool reads_ahead() const { return pager_ != nullptr; }

  // Returns the stored state of the cohort members at positions first .. first+count-1: [count,L].
  [[nodiscard]] BatchView<T> stored(const std::string& name, std::uint32_t first, std::uint32_t count) {
    return find(name).stored(now_, first, count);
  }
  // Returns their shadow rows, which may be written until the round ends.
  [[nodiscard]] BatchView<T> shadow(const std::string& name, std::uint32_t first, std::uint32_t count) {
    return find(name).shadow(now_, first, count);
  }
  // Returns one client's stored vector [L] for modification in place; the client need not be in the cohort. It is valid until another
  // client is requested or a round opens. The host cannot access rows in a GPU's own memory: use peek() and put().
  [[nodiscard]] std::span<T> of_client(const std::string& name, std::uint32_t client);
  // Replaces one client's vector by a copy of `row` [L], which may be in any memory.
  void put(const std::string& name, std::uint32_t client, std::span<const T> row);
  // Returns one client's vector for reading, or an empty span if it is known to be zero. Clients in the file stay there.
  [[nodiscard]] std::span<const T> peek(const std::string& name, std::uint32_t client);
  // Returns a read-only view [clients,L] of several clients. All of them must be in memory. The view takes its row numbers from `rows`.
  [[nodiscard]] BatchView<const T> of_clients(const std::string& name, std::span<const std::uint32_t> clients,
                                              std::vector<std::uint32_t>& rows);
  // Makes the shadow row the client's state, after the message at this position has arrived.
  void swap(const std::string& name, std::uint32_t position) { find(name).swap(now_, position, frames_[now_ * max_cohort_ + position]); }

  // Returns the memory of client slots: the host's, managed, or a GPU's own.
  [[nodiscard]] Device memory() const { return memory_; }

  // Returns the round of a client's last acknowledged message; 0 = none yet.
  [[nodiscard]] std::uint32_t acknowledged(std::uint32_t client) const { return acknowledged_[client]; }
  void set_acknowledged(std::uint32_t client, std::uint32_t round) { acknowledged_[client] = round; }

  [[nodiscard]] bool has_slot(const std::string& name) const { return slots_.contains(name); }
  [[nodiscard]] std::size_t num_clients() const { return num_clients_; }
  [[nodiscard]] std::size_t P() const { return P_; }

  // Writes or reads the state. Client state that is all zero, as for clients that never took part, takes one byte each. If there is a page
  // file that may be kept, the checkpoint refers to places in it instead of repeating the state. Both kinds can be read with any memory
  // setting.
  void persist(Archive& archive);
  // Returns the name of the page file that persist() will refer to, "" = none.
  [[nodiscard]] std::string page_file();
  // Declares that the checkpoint written by persist() is on disk.
  void commit_checkpoint();

  // Return upper bounds in bytes on the memory of the declared slots, and the bytes of one client's rows.
  [[nodiscard]] std::size_t size_bytes() const;
  [[nodiscard]] std::size_t client_bytes() const;
  // Return the memory in bytes if all rows are in memory, and the minimum for one round. Call after the last declaration.
  [[nodiscard]] std::uint64_t whole_bytes() const { return num_clients_ * client_bytes() + num_waves_ * max_cohort_ * shadow_bytes(); }
  [[nodiscard]] std::uint64_t least_bytes() const;
  // Returns the maximum number of clients whose rows are in memory.
  [[nodiscard]] std::size_t num_frames() const { return num_frames_; }

 private:
  SlotRows<T>& find(const std::string& name) {
    const auto it = slots_.find(name);
    if (it == slots_.end()) throw Error("no client slot named '" + name + "' was declared");
    return it->second;
  }
  void reserve(SlotRows<T>& slot, std::size_t num_frames, std::size_t shadows) const;
  [[nodiscard]] std::size_t shadow_bytes() const;
  [[noreturn]] void refuse(std::uint64_t memory, bool was_asked) const;
  void persist_clients(Archive& archive);
  void read_pages(Archive& archive);

  std::size_t num_clients_, max_cohort_, P_, likely_cohort_, num_frames_;
  Device memory_;  // of slots: the host's, managed if operators run on a GPU, or that GPU's own
  std::map<std::string, SlotRows<T>> slots_;
  std::size_t num_waves_ = 1, now_ = 0;  // the selected one
  std::vector<std::uint32_t> frames_;    // [waves, maximum cohort] of the round's members
  std::vector<std::uint32_t> acknowledged_;
  std::vector<T> peeked_;
  std::unique_ptr<StatePaging> paging_;  // null: memory has no bound
  std::unique_ptr<StatePager> pager_;    // null: everything is in memory
};

extern template class ClientState<float>;
extern template class ClientState<double>;

}  // namespace fl
