// The state that only the server keeps between rounds: sums and means in double, and copies built from each client's messages.
//
// A copy (SlotOwner::server_copy) is a vector per client that only messages change. A client gets its row when its copy is first asked for,
// so that the rows in use are next to each other; untouched pages use no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fl_core/memory/buffer.hpp"
#include "fl_core/state/archive.hpp"
#include "fl_core/state/slot_spec.hpp"

namespace fl {

template <class T>
class FL_API ServerState {
 public:
  ServerState(std::size_t num_clients, std::size_t P) : num_clients_(num_clients), P_(P) {}

  // Declares a slot of owner `server` or `server_copy`.
  void declare(const SlotSpec& spec);
  // Throw Error for an undeclared name. A copy is for one thread at a time.
  [[nodiscard]] std::span<double> slot(const std::string& name);
  [[nodiscard]] std::span<T> copy(const std::string& name, std::uint32_t client);
  [[nodiscard]] bool has_slot(const std::string& name) const { return slots_.contains(name); }

  void persist(Archive& archive);
  [[nodiscard]] std::uint64_t size_bytes() const;

 private:
  static constexpr std::uint32_t kNoRow = ~std::uint32_t{0};
  struct Copies {
    std::size_t length = 0;
    Buffer<T> rows;                            // [N,L]
    std::vector<std::uint32_t> row_of_client;  // [N], kNoRow for a client whose copy nobody has asked for
    std::uint32_t num_rows = 0;                // that clients have
  };

  std::size_t num_clients_, P_;
  std::map<std::string, Buffer<double>> slots_;
  std::map<std::string, Copies> copies_;
};

extern template class ServerState<float>;
extern template class ServerState<double>;

}  // namespace fl
