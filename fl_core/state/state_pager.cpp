#include "fl_core/state/state_pager.hpp"

#include <algorithm>
#include <future>
#include <limits>
#include <string>
#include <utility>

#include "fl_core/config/error.hpp"

namespace fl {

namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

}  // namespace

struct StatePager::Ahead {
  std::future<void> done;
};

StatePager::StatePager(std::size_t num_clients, std::uint32_t num_frames, std::size_t record_bytes, const PageFileOptions& file,
                       Device memory, RecordMemory::PartsOf parts_of)
    : memory_(record_bytes, memory, std::move(parts_of)),
      file_(file, record_bytes),
      frames_(num_frames, Frame{.client = kNone}),
      frame_of_client_(num_clients, kNone),
      place_(num_clients, kNone),
      committed_place_(num_clients, kNone),
      checksum_(num_clients),
      ahead_(std::make_unique<Ahead>()) {}

StatePager::~StatePager() {
  if (ahead_->done.valid()) ahead_->done.wait();
}

// Waits for the thread; what it threw is thrown here.
void StatePager::settle() {
  if (ahead_->done.valid()) ahead_->done.get();
}

void StatePager::open_round(std::span<const std::uint32_t> cohort, std::span<const std::uint32_t> next_cohort) {
  settle();
  turn_ += 2;       // what was brought in for this round, at the turn between, has no right to stay unless it takes part
  cohort_.clear();  // until all of them are in
  if (cohort.size() > frames_.size())
    throw StoreError("a round of " + std::to_string(cohort.size()) + " clients came, and --state-memory has room for the state of " +
                     std::to_string(frames_.size()) + ": allow more");
  for (const std::uint32_t client : cohort)
    if (frame_of_client_[client] != kNone) frames_[frame_of_client_[client]].kept_until = turn_;
  for (const std::uint32_t client : cohort) {
    if (frame_of_client_[client] == kNone) load(client, find_frame());
    Frame& one = frames_[frame_of_client_[client]];
    one.kept_until = turn_;
    one.is_dirty = one.is_used = true;
  }
  cohort_.assign(cohort.begin(), cohort.end());
  std::ranges::sort(cohort_);
  next_.assign(next_cohort.begin(), next_cohort.end());
  const auto is_missing = [this](std::uint32_t client) { return frame_of_client_[client] == kNone; };
  if (std::ranges::any_of(next_, is_missing)) ahead_->done = std::async(std::launch::async, [this] { bring_in_next(next_); });
}

// Loads clients of the cohort ahead, into frames that neither it nor the current cohort needs. Clients of it that have a frame keep it.
void StatePager::bring_in_next(std::span<const std::uint32_t> cohort) {
  std::size_t in_use = cohort_.size();
  for (const std::uint32_t client : cohort) {
    if (frame_of_client_[client] == kNone) continue;
    Frame& one = frames_[frame_of_client_[client]];
    in_use += one.kept_until == turn_ ? 0 : 1;
    one.kept_until = turn_ + 1;
  }
  std::size_t available = frames_.size() - in_use;
  for (const std::uint32_t client : cohort) {
    if (available == 0) return;
    if (frame_of_client_[client] != kNone) continue;
    const std::uint32_t found = find_frame();
    load(client, found);
    frames_[found].kept_until = turn_ + 1;
    --available;
  }
}

std::uint32_t StatePager::frame_of(std::uint32_t client) {
  if (std::ranges::binary_search(cohort_, client)) return frame_of_client_[client];
  settle();
  if (frame_of_client_[client] == kNone) load(client, find_frame());
  Frame& one = frames_[frame_of_client_[client]];
  one.is_dirty = one.is_used = true;
  return frame_of_client_[client];
}

// A free one, or that of the first client under the hand that neither takes part nor has done so since the hand was here last.
std::uint32_t StatePager::find_frame() {
  if (num_used_ < frames_.size()) return num_used_++;
  for (std::size_t steps = 0; steps <= 2 * frames_.size(); ++steps) {
    const std::uint32_t at = hand_;
    hand_ = (hand_ + 1) % num_frames();
    Frame& one = frames_[at];
    if (one.kept_until >= turn_ && turn_ > 0) continue;
    if (std::exchange(one.is_used, false)) continue;
    if (one.is_dirty) write_out(at);
    if (one.client != kNone) frame_of_client_[one.client] = kNone;
    one.client = kNone;
    return at;
  }
  throw StoreError("every client in memory takes part: --state-memory is too small");
}

void StatePager::load(std::uint32_t client, std::uint32_t frame) {
  read_in(client, frame);
  frames_[frame] = {.client = client};
  frame_of_client_[client] = frame;
}

void StatePager::write_out(std::uint32_t frame) {
  const std::uint32_t client = frames_[frame].client;
  if (place_[client] == committed_place_[client]) {
    place_[client] = file_.take_place();
    moved_.push_back(client);
  }
  const RecordParts record = memory_.fetch(frame);
  checksum_[client] = file_.write(place_[client], record);
  frames_[frame].is_dirty = false;
}

void StatePager::read_record(std::uint32_t client, RecordParts record) const {
  if (file_.read(place_[client], record) == checksum_[client]) return;
  throw StoreError(
      "client state is damaged: " + file_.text_of(place_[client]) + ", the state of client " + std::to_string(client) +
      ", is not what was written there (its checksum differs): the disk or another program changed it, and nothing was computed "
      "with it. Look after the disk, then go on with --resume from the last checkpoint, if any: its state is checked before it "
      "is used");
}

void StatePager::read_in(std::uint32_t client, std::uint32_t frame) {
  const RecordParts record = memory_.open(frame);
  if (place_[client] != kNone)
    read_record(client, record);
  else
    for (const std::span<std::byte> part : record) std::ranges::fill(part, std::byte{0});
  memory_.store(frame);
}

bool StatePager::read_part(std::uint32_t client, std::size_t offset, std::span<std::byte> part) {
  settle();
  const std::uint32_t frame = frame_of_client_[client];
  if (frame == kNone) {
    if (place_[client] == kNone) return false;
    looked_at_.resize(file_.record_bytes());
    const std::span<std::byte> record(looked_at_);
    read_record(client, {&record, 1});
    std::ranges::copy(record.subspan(offset, part.size()), part.begin());
    return true;
  }
  memory_.read(frame, offset, part);
  return true;
}

void StatePager::persist(Archive& archive) {
  settle();
  cohort_.clear();  // the round is over
  PageIndex index;
  if (!archive.is_reading()) {
    for (std::uint32_t frame = 0; frame < num_used_; ++frame)
      if (frames_[frame].is_dirty) write_out(frame);
    file_.sync();
    index.name = file_.name();
    index.record_bytes = file_.record_bytes();
    for (std::uint32_t client = 0; client < place_.size(); ++client) {
      if (place_[client] == kNone) continue;
      index.clients.push_back(client);
      index.places.push_back(place_[client]);
      index.checksums.push_back(checksum_[client]);
    }
    return index.persist(archive);
  }
  index.persist(archive);
  index.validate(place_.size(), file_.record_bytes());
  file_.adopt(index.name, index.num_places());
  for (std::uint32_t frame = 0; frame < num_used_; ++frame) {
    if (frames_[frame].client != kNone) frame_of_client_[frames_[frame].client] = kNone;
    frames_[frame] = {.client = kNone};
  }
  std::ranges::fill(place_, kNone);
  moved_.clear();
  num_used_ = 0;
  std::vector<bool> taken(index.num_places(), false);
  const RecordParts record = memory_.open(0);
  for (std::size_t i = 0; i < index.clients.size(); ++i) {
    read_checked(file_, index, i, record);
    place_[index.clients[i]] = index.places[i];
    checksum_[index.clients[i]] = index.checksums[i];
    taken[index.places[i]] = true;
  }
  committed_place_ = place_;
  file_.set_taken(taken);
}

void StatePager::commit() {
  file_.keep();
  for (const std::uint32_t client : std::exchange(moved_, {})) {
    if (committed_place_[client] != kNone) file_.give_back(committed_place_[client]);
    committed_place_[client] = place_[client];
  }
}

}  // namespace fl
