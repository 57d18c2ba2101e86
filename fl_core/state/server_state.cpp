#include "fl_core/state/server_state.hpp"

#include "fl_core/config/error.hpp"
#include "fl_core/state/persisted_row.hpp"

namespace fl {

template <class T>
void ServerState<T>::declare(const SlotSpec& spec) {
  const std::size_t length = spec.length == 0 ? P_ : spec.length;
  if (spec.owner == SlotOwner::server_copy)
    copies_[spec.name] = {length, Buffer<T>(num_clients_ * length), std::vector<std::uint32_t>(num_clients_, kNoRow)};
  else
    slots_[spec.name] = Buffer<double>(length);
}

template <class T>
std::span<double> ServerState<T>::slot(const std::string& name) {
  const auto it = slots_.find(name);
  if (it == slots_.end()) throw Error("no slot of the server named '" + name + "' was declared");
  return it->second.span();
}

template <class T>
std::span<T> ServerState<T>::copy(const std::string& name, std::uint32_t client) {
  const auto it = copies_.find(name);
  if (it == copies_.end()) throw Error("no copy of clients' state named '" + name + "' was declared");
  Copies& copies = it->second;
  std::uint32_t& row = copies.row_of_client[client];
  if (row == kNoRow) row = copies.num_rows++;
  return copies.rows.span().subspan(row * copies.length, copies.length);
}

template <class T>
void ServerState<T>::persist(Archive& archive) {
  for (auto& [name, slot] : slots_) {
    archive.section(name);
    archive.array(slot.span());
  }
  for (auto& [name, copies] : copies_) {
    archive.section(name);
    for (std::uint32_t client = 0; client < num_clients_; ++client) {
      const bool has_row = copies.row_of_client[client] != kNoRow;
      std::uint8_t is_present = !archive.is_reading() && has_row && !is_zero_row<T>(copy(name, client)) ? 1 : 0;
      persist_mark(archive, name, client, is_present);
      if (is_present == 1) archive.array(copy(name, client));
    }
  }
}

template <class T>
std::uint64_t ServerState<T>::size_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [_, slot] : slots_) bytes += slot.size() * sizeof(double);
  for (const auto& [_, copies] : copies_) bytes += copies.rows.size() * sizeof(T);
  return bytes;
}

template class ServerState<float>;
template class ServerState<double>;

}  // namespace fl
