#include "fl_core/state/client_state.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "fl_core/state/persisted_row.hpp"
#include "fl_core/state/state_pager.hpp"

namespace fl {

namespace {

enum class Kept : std::uint8_t { inline_rows = 0, page_file = 1 };

// Rounded up to what the option takes, so that the text can be typed in.
std::string size_text(std::size_t bytes) {
  constexpr std::size_t kKilo = 1024;
  return std::to_string((bytes + kKilo - 1) / kKilo) + "K";
}

}  // namespace

template <class T>
ClientState<T>::ClientState(std::size_t num_clients, std::size_t max_cohort, std::size_t P)
    : ClientState(num_clients, max_cohort, P, StatePaging{}, max_cohort) {}

template <class T>
ClientState<T>::ClientState(std::size_t num_clients, std::size_t max_cohort, std::size_t P, const StatePaging& paging,
                            std::size_t likely_cohort, Device memory)
    : num_clients_(num_clients),
      max_cohort_(max_cohort),
      P_(P),
      likely_cohort_(likely_cohort),
      num_frames_(num_clients),
      memory_(memory),
      acknowledged_(num_clients, 0),
      paging_(std::make_unique<StatePaging>(paging)) {}

template <class T>
ClientState<T>::~ClientState() = default;

template <class T>
void ClientState<T>::declare(const SlotSpec& spec) {
  SlotRows<T>& slot = slots_[spec.name] = {spec, P_};
  if (paging_->memory_bytes == 0 && memory_ == Device::cpu) reserve(slot, num_clients_, max_cohort_);
}

// On a GPU all rows have memory; if there are fewer frames than clients, the pager fills them in order.
template <class T>
void ClientState<T>::reserve(SlotRows<T>& slot, std::size_t num_frames, std::size_t shadows) const {
  const bool in_order = memory_ != Device::cpu || num_frames < num_clients_;
  slot.reserve(num_frames, {.waves = num_waves_, .max_cohort = max_cohort_, .shadows = shadows}, memory_, in_order);
}

template <class T>
std::uint64_t ClientState<T>::least_bytes() const {
  return std::min(likely_cohort_ + 1, num_clients_) * client_bytes() + likely_cohort_ * shadow_bytes();
}

template <class T>
void ClientState<T>::bound_memory(std::uint64_t room) {
  const std::uint64_t asked = paging_->memory_bytes == 0 ? kNoBound : paging_->memory_bytes, memory = std::min(asked, room);
  if (slots_.empty() || (memory == kNoBound && memory_ == Device::cpu)) return;
  std::size_t shadows = max_cohort_;
  if (memory < whole_bytes()) {
    shadows = likely_cohort_;
    if (memory < least_bytes()) refuse(memory, asked <= room);
    num_frames_ = std::min<std::size_t>(num_clients_, (memory - shadows * shadow_bytes()) / client_bytes());
  }
  for (auto& [_, slot] : slots_) reserve(slot, num_frames_, shadows);
  if (num_frames_ == num_clients_) return;
  if (num_waves_ > 1) throw ConfigError("--state-memory: rounds that overlap need the state of all clients in memory");
  pager_ = std::make_unique<StatePager>(num_clients_, static_cast<std::uint32_t>(num_frames_), client_bytes(), paging_->file, memory_,
                                        [this](std::uint32_t frame, std::vector<std::span<std::byte>>& parts) {
                                          for (auto& [_, slot] : slots_) parts.push_back(std::as_writable_bytes(slot.of_frame(frame)));
                                        });
}

template <class T>
void ClientState<T>::refuse(std::uint64_t memory, bool was_asked) const {
  const std::string need = size_text(least_bytes()) + " for this run, whose rounds have up to " + std::to_string(likely_cohort_) +
                           " clients with " + std::to_string(client_bytes()) + " bytes of state each";
  if (was_asked) throw ConfigError("--state-memory: must be at least " + need + "; is " + size_text(memory));
  throw DeviceError("out of memory on the GPU: client state takes at least " + need + "; " + size_text(memory) +
                    " are free beside what rounds take; fewer runs at a time (--jobs), fewer clients in a round, a smaller model or "
                    "--device cpu need less");
}

template <class T>
void ClientState<T>::open_round(std::span<const std::uint32_t> cohort, std::span<const std::uint32_t> next_cohort) {
  frames_.resize(num_waves_ * max_cohort_);
  const std::span<std::uint32_t> frames = std::span(frames_).subspan(now_ * max_cohort_, cohort.size());
  std::ranges::copy(cohort, frames.begin());
  if (pager_) {
    pager_->open_round(cohort, next_cohort);
    for (std::uint32_t& frame : frames) frame = pager_->frame_of_member(frame);
  }
  for (auto& [name, slot] : slots_) {
    if (slot.is_double_buffered() && cohort.size() > slot.num_shadows())
      throw StoreError("a round of " + std::to_string(cohort.size()) +
                       " clients came, and the memory for client state was taken to be for " + std::to_string(slot.num_shadows()) +
                       ": allow more (--state-memory), or leave it out");
    slot.open(now_, frames);
  }
}

template <class T>
std::span<T> ClientState<T>::of_client(const std::string& name, std::uint32_t client) {
  SlotRows<T>& slot = find(name);
  return slot.of_frame(pager_ ? pager_->frame_of(client) : client).first(slot.length());
}

template <class T>
void ClientState<T>::put(const std::string& name, std::uint32_t client, std::span<const T> row) {
  const std::span<T> stored = of_client(name, client);
  if (row.size() != stored.size())
    throw Error("client slot '" + name + "' holds " + std::to_string(stored.size()) + " entries of each client");
  if (memory_ == Device::cpu) {
    std::ranges::copy(row, stored.begin());
    return;
  }
  const DeviceStream stream(Device::cuda);
  copy_bytes(stored.data(), memory_, row.data(), Device::cpu, row.size_bytes(), stream.get());
}

template <class T>
std::span<const T> ClientState<T>::peek(const std::string& name, std::uint32_t client) {
  if (!pager_ && memory_ == Device::cpu) {
    if (!find(name).has_row(client)) return {};
    return of_client(name, client);
  }
  if (!pager_) {  // a copy: its pages stay where they are
    const std::span<const T> row = of_client(name, client);
    const DeviceStream stream(Device::cuda);
    peeked_.resize(row.size());
    copy_bytes(peeked_.data(), Device::cpu, row.data(), memory_, row.size_bytes(), stream.get());
    return peeked_;
  }
  std::size_t offset = 0;
  for (const auto& [other, slot] : slots_) {
    if (other == name) {
      peeked_.resize(slot.length());
      const bool is_there = pager_->read_part(client, offset, std::as_writable_bytes(std::span(peeked_)));
      return is_there ? std::span<const T>(peeked_) : std::span<const T>();
    }
    offset += slot.stride() * sizeof(T);
  }
  throw Error("no client slot named '" + name + "' was declared");
}

template <class T>
BatchView<const T> ClientState<T>::of_clients(const std::string& name, std::span<const std::uint32_t> clients,
                                              std::vector<std::uint32_t>& rows) {
  SlotRows<T>& slot = find(name);
  rows.clear();
  for (const std::uint32_t client : clients) rows.push_back(slot.row_of(pager_ ? pager_->frame_of(client) : client));
  return {slot.data(), rows.data(), static_cast<std::uint32_t>(clients.size()), slot.length(), slot.stride()};
}

template <class T>
void ClientState<T>::persist(Archive& archive) {
  archive.section("state");
  Kept kept = Kept::inline_rows;
  if (!archive.is_reading() && !page_file().empty()) kept = Kept::page_file;
  archive.value(kept);
  if (kept != Kept::inline_rows && kept != Kept::page_file)
    throw ArchiveError("in 'state': it is kept in way " + std::to_string(static_cast<int>(kept)) + ", which this fedbits does not know");
  if (kept == Kept::inline_rows)
    persist_clients(archive);
  else if (pager_ && pager_->file().can_be_kept())
    pager_->persist(archive);
  else
    read_pages(archive);
  archive.array(std::span(acknowledged_));
}

// Client by client, each slot's row where one of them is not zero. When reading, the table must be new.
template <class T>
void ClientState<T>::persist_clients(Archive& archive) {
  for (auto& [name, slot] : slots_) {
    archive.section(name);
    for (std::uint32_t client = 0; client < num_clients_; ++client) {
      std::uint8_t is_present = !archive.is_reading() && !is_zero_row(peek(name, client)) ? 1 : 0;
      persist_mark(archive, name, client, is_present);
      if (is_present == 0) continue;
      if (memory_ == Device::cpu) {
        archive.array(of_client(name, client));
        continue;
      }
      peeked_.resize(slot.length());  // what peek() left there, or room for what is read
      archive.array(std::span<T>(peeked_));
      if (archive.is_reading()) put(name, client, peeked_);
    }
  }
}

// A run whose memory is not bounded any more takes all rows of a page file into memory.
template <class T>
void ClientState<T>::read_pages(Archive& archive) {
  PageIndex index;
  index.persist(archive);
  index.validate(num_clients_, client_bytes());
  PageFile file(paging_->file, client_bytes());
  file.adopt(index.name, index.num_places());
  std::vector<T> record(client_bytes() / sizeof(T));
  for (std::size_t i = 0; i < index.clients.size(); ++i) {
    const std::span<std::byte> part = std::as_writable_bytes(std::span(record));
    read_checked(file, index, i, {&part, 1});
    std::size_t at = 0;
    for (const auto& [name, slot] : slots_) {
      put(name, index.clients[i], std::span<const T>(record).subspan(at, slot.length()));
      at += slot.stride();
    }
  }
}

template <class T>
std::string ClientState<T>::page_file() {
  return pager_ && pager_->file().can_be_kept() ? pager_->file().name() : "";
}

template <class T>
void ClientState<T>::commit_checkpoint() {
  if (!page_file().empty()) pager_->commit();
}

template <class T>
std::size_t ClientState<T>::client_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [_, slot] : slots_) bytes += slot.stride() * sizeof(T);
  return bytes;
}

template <class T>
std::size_t ClientState<T>::shadow_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [_, slot] : slots_) bytes += slot.is_double_buffered() ? slot.stride() * sizeof(T) : 0;
  return bytes;
}

template <class T>
std::size_t ClientState<T>::size_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [_, slot] : slots_) bytes += slot.size_bytes();
  return bytes;
}

template class ClientState<float>;
template class ClientState<double>;

}  // namespace fl
