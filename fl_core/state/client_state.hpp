// What clients remember between rounds: the slots of owner `client`, one vector per client [N,L], and the round of each client's last
// acknowledged message. Acknowledged messages alone move it, and touched pages alone cost memory. The server's half of a method has no way
// to reach it.
//
// A double-buffered slot has a shadow row per cohort position: the round writes the new state there, acknowledgement swaps the two rows,
// loss forgets the shadow.
//
// Rows lie in a pool, and a view says which row is whose. Where memory is bounded (StatePaging) and all clients' rows would
// not fit, the pool holds the rows of some clients (in frames, fl_core/state/state_pager.hpp) and a file those of the others; else every
// client has the frame of its own number. Memory = (frames + cohort) x L per slot. A GPU's memory is a bound that nobody has to ask for.
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
#include "fl_core/memory/buffer.hpp"
#include "fl_core/state/archive.hpp"
#include "fl_core/state/slot_spec.hpp"

namespace fl {

class StatePager;
struct StatePaging;
inline constexpr std::uint64_t kNoBound = ~std::uint64_t{0};  // bytes

template <class T>
class FL_API ClientState {
 public:
  // All rows in memory.
  ClientState(std::size_t num_clients, std::size_t max_cohort, std::size_t P);
  // Slots are bounded by paging.memory_bytes, or lie in memory that a GPU shares: bound_memory() must follow their declaration.
  // `likely_cohort` is how many clients a round has at most, as far as one can tell before.
  ClientState(std::size_t num_clients, std::size_t max_cohort, std::size_t P, const StatePaging& paging, std::size_t likely_cohort,
              Device memory = Device::cpu);
  ~ClientState();

  void declare(const SlotSpec& spec);
  // After the last declaration. `room`: bytes that client slots may take of a GPU. Throws ConfigError (memory_bytes) or DeviceError (room),
  // with the least that is needed, where memory does not suffice for a round.
  void bound_memory(std::uint64_t room = kNoBound);

  // Says which clients the positions of this round are; call before any view is taken. `next_cohort`, if it is known, is brought in
  // meanwhile. Throws StoreError where rows cannot be read from or written to their file.
  void open_round(std::span<const std::uint32_t> cohort, std::span<const std::uint32_t> next_cohort = {});
  // It is of use to say who comes next.
  [[nodiscard]] bool reads_ahead() const { return pager_ != nullptr; }

  // Stored state of the cohort's members at positions first .. first+count-1: [count,L].
  [[nodiscard]] BatchView<T> stored(const std::string& name, std::uint32_t first, std::uint32_t count) {
    Slot& slot = find(name);
    return {slot.pool.data(), slot.rows.data() + first, count, slot.length, slot.stride};
  }
  // Their shadow rows, free to be written until the round ends.
  [[nodiscard]] BatchView<T> shadow(const std::string& name, std::uint32_t first, std::uint32_t count) {
    Slot& slot = find(name);
    return {slot.pool.data(), slot.shadow_rows.data() + first, count, slot.length, slot.stride};
  }
  // Returns one client's stored vector, in the cohort or not, to be changed where it lies: [L]. Valid until another client is asked for or
  // a round opens. In a GPU's own memory no host may follow it: use peek() and put().
  [[nodiscard]] std::span<T> of_client(const std::string& name, std::uint32_t client);
  // Replaces it by a copy of `row` [L], in any memory.
  void put(const std::string& name, std::uint32_t client, std::span<const T> row);
  // The same to be read; empty where it is known to be zero. Clients in the file stay there.
  [[nodiscard]] std::span<const T> peek(const std::string& name, std::uint32_t client);
  // Vectors of several clients to be read, all of which are in memory: [clients,L]. The view finds its row numbers in `rows`.
  [[nodiscard]] BatchView<const T> of_clients(const std::string& name, std::span<const std::uint32_t> clients,
                                              std::vector<std::uint32_t>& rows);
  // The message at this position has arrived: its shadow row becomes the client's state.
  void swap(const std::string& name, std::uint32_t position) {
    Slot& slot = find(name);
    std::swap(slot.row_of_frame[frames_[position]], slot.shadow_rows[position]);
    slot.rows[position] = slot.row_of_frame[frames_[position]];
  }

  // Where client slots lie: the host's memory, managed, or a GPU's own.
  [[nodiscard]] Device memory() const { return memory_; }

  // The round of a client's last acknowledged message; 0 = none yet.
  [[nodiscard]] std::uint32_t acknowledged(std::uint32_t client) const { return acknowledged_[client]; }
  void set_acknowledged(std::uint32_t client, std::uint32_t round) { acknowledged_[client] = round; }

  [[nodiscard]] bool has_slot(const std::string& name) const { return slots_.contains(name); }
  [[nodiscard]] std::size_t num_clients() const { return num_clients_; }
  [[nodiscard]] std::size_t P() const { return P_; }

  // Client state that is all zero, as that of clients that never took part, takes a byte each. Where there is a page file that may be
  // kept, a checkpoint refers to its places instead of repeating it; either kind is read with any memory.
  void persist(Archive& archive);
  // The name of the page file that persist() will refer to, "" = none.
  [[nodiscard]] std::string page_file();
  // The checkpoint that persist() was written to is on disk.
  void commit_checkpoint();

  // Bytes that the declared slots may come to occupy in memory, and those of one client's rows.
  [[nodiscard]] std::size_t size_bytes() const;
  [[nodiscard]] std::size_t client_bytes() const;
  // What client slots take where all rows are in memory, and the least with which a round can be played. After the last declaration.
  [[nodiscard]] std::uint64_t whole_bytes() const { return num_clients_ * client_bytes() + max_cohort_ * shadow_bytes(); }
  [[nodiscard]] std::uint64_t least_bytes() const;
  // How many clients' rows are in memory at most.
  [[nodiscard]] std::size_t num_frames() const { return num_frames_; }

 private:
  struct Slot {
    std::size_t length = 0;
    std::size_t stride = 0;  // a row begins on a cache line: vector loads that straddle two are slower
    bool double_buffered = false;
    Buffer<T> pool;                           // [frames + shadows, stride]
    std::vector<std::uint32_t> row_of_frame;  // [frames]
    std::vector<std::uint32_t> shadow_rows;   // [most members of a cohort]
    std::vector<std::uint32_t> rows;          // [max_cohort] of this round's members
  };
  Slot& find(const std::string& name) {
    const auto it = slots_.find(name);
    if (it == slots_.end()) throw Error("no client slot named '" + name + "' was declared");
    return it->second;
  }
  void allocate(Slot& slot, std::size_t num_frames, std::size_t shadows) const;
  [[nodiscard]] std::size_t shadow_bytes() const;
  [[noreturn]] void refuse(std::uint64_t memory, bool was_asked) const;
  void persist_clients(Archive& archive);
  void read_pages(Archive& archive);

  std::size_t num_clients_, max_cohort_, P_, likely_cohort_, num_frames_;
  Device memory_;  // of slots: the host's, managed where operators run on a GPU, or that GPU's own
  std::map<std::string, Slot> slots_;
  std::vector<std::uint32_t> frames_;  // of this round's members
  std::vector<std::uint32_t> acknowledged_;
  std::vector<T> peeked_;
  std::unique_ptr<StatePaging> paging_;  // none: memory has no bound
  std::unique_ptr<StatePager> pager_;    // none: everything is in memory
};

extern template class ClientState<float>;
extern template class ClientState<double>;

}  // namespace fl
