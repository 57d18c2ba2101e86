#include "net/peer/peer_journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "fl_core/config/error.hpp"
#include "fl_core/config/regular_file.hpp"
#include "fl_core/state/checksum.hpp"

namespace fl::net {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t kVersion = 1;
constexpr const char *kBase = ".checkpoint", *kRecent = ".recent", *kRounds = ".rounds";

// Precedes the content of a record: the frames as on a connection, one after another.
struct RecordHead {
  std::uint64_t size = 0, checksum = 0;
  std::uint32_t round = 0, before = 0;
};
static_assert(sizeof(RecordHead) == 24);

// The checksum is also of the head, so that no damaged byte counts.
std::uint64_t checksum_of(const RecordHead& head, std::span<const std::byte> content) {
  return Hash64().add_value(head.size).add_value(head.round).add_value(head.before).add(content).value();
}

void append_bytes(Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

Bytes bytes_of(const RoundRecord& record) {
  Bytes bytes(sizeof(RecordHead));
  for (const Frame& frame : record.frames) {
    append_bytes(bytes, stored_head(frame.header, frame.payload.size()));
    append_bytes(bytes, frame.payload);
  }
  RecordHead head{.size = bytes.size() - sizeof(RecordHead), .round = record.round, .before = record.before};
  head.checksum = checksum_of(head, std::span(bytes).subspan(sizeof head));
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

std::vector<Frame> frames_in(std::span<const std::byte> bytes) {
  std::vector<Frame> frames;
  while (!bytes.empty()) {
    if (bytes.size() < kSizesBytes) throw ProtocolError("a frame is cut short");
    const FrameSizes sizes = read_sizes(bytes.first<kSizesBytes>(), bytes.size());
    bytes = bytes.subspan(kSizesBytes);
    if (sizes.header + sizes.payload > bytes.size()) throw ProtocolError("a frame is cut short");
    const std::span<const std::byte> payload = bytes.subspan(sizes.header, sizes.payload);
    frames.push_back({.header = parse_header(bytes.first(sizes.header)), .payload = ReceivedBytes(payload)});
    bytes = bytes.subspan(sizes.header + sizes.payload);
  }
  return frames;
}

// Writes or reads what the file of records begins with.
void persist_identity(Archive& archive, std::string& run, std::string& clients, std::string& build) {
  archive.section("fedbits rounds of a peer");
  std::uint32_t version = kVersion;
  archive.value(version);
  if (version != kVersion) throw ArchiveError("it has version " + std::to_string(version) + ", not " + std::to_string(kVersion));
  archive.text(run);
  archive.text(clients);
  archive.text(build);
}

// Compares the identity at the beginning of a file of records. Returns where the records begin.
std::uint64_t read_identity(const RegularFile& in, const std::string& expected_run, const std::string& expected_clients) {
  const auto refuse = [&in](const std::string& why) {
    throw StoreError("the state of clients in " + in.path().string() + " cannot be used: " + why +
                     "; choose another folder with --state, or remove the run's files there, and with them the clients' state");
  };
  constexpr std::uint64_t kMostBytes = 1 << 20;
  std::uint64_t size = 0, checksum = 0;
  if (in.size() >= sizeof size) in.read(0, std::as_writable_bytes(std::span(&size, 1)));
  if (size < 2 * sizeof size || size > std::min(in.size(), kMostBytes)) refuse("its beginning is damaged");
  Bytes bytes(size - 2 * sizeof size);
  in.read(sizeof size, bytes);
  in.read(size - sizeof checksum, std::as_writable_bytes(std::span(&checksum, 1)));
  if (checksum != hash64_of(bytes)) refuse("its beginning does not match its checksum");
  std::string run, clients, build;
  try {
    Archive archive(bytes);
    persist_identity(archive, run, clients, build);
  } catch (const ArchiveError& error) {
    refuse(error.what());
  }
  if (run != expected_run) refuse("it is of run " + run + ", and the server plays " + expected_run);
  if (clients != expected_clients) refuse("it is of clients " + clients + ", and this peer hosts " + expected_clients);
  if (build != build_fingerprint()) refuse("another build wrote it (" + build + "; this is " + build_fingerprint() + ")");
  return size;
}

}  // namespace

PeerJournal::PeerJournal(PeerJournalOptions options) : options_(std::move(options)) {
  std::error_code error;
  fs::create_directories(options_.folder, error);
  if (!fs::exists(file(kRounds), error)) {
    forget_snapshots();
    write_identity();
  }
  base_ = round_of(JournalSnapshot::base);
  recent_ = round_of(JournalSnapshot::recent);
  if (recent_ <= base_) recent_ = 0;  // a process was killed between writing the base and removing it
  open();
}

PeerJournal::~PeerJournal() {
  if (file_ >= 0) options_.system->close(file_);
}

void PeerJournal::fail(const std::string& step) const {
  const int reason = errno;
  throw StoreError("cannot keep the state of clients " + options_.clients + " in " + file(kRounds).string() + ": " + step + ": " +
                   std::strerror(reason) + "; free some space and join again with the same --state, which has the rounds before");
}

void PeerJournal::write_identity() {
  Archive archive;
  std::string build = build_fingerprint();
  persist_identity(archive, options_.run, options_.clients, build);
  Bytes bytes = archive.bytes();
  std::uint64_t checksum = hash64_of(bytes), size = bytes.size() + 2 * sizeof(std::uint64_t);
  Bytes all(sizeof size);
  std::memcpy(all.data(), &size, sizeof size);
  append_bytes(all, bytes);
  append_bytes(all, std::as_bytes(std::span(&checksum, 1)));
  write_atomically(file(kRounds), all, *options_.system);
}

// Returns the round of a snapshot, 0 if there is none that can be read.
std::uint32_t PeerJournal::round_of(JournalSnapshot snapshot) {
  const fs::path path = plan_of(snapshot).file;
  std::error_code error;
  if (!fs::exists(path, error)) return 0;
  CheckpointHeader header;
  try {
    peek_checkpoint(path, header, [](Archive&) {});
    snapshot_bytes_ = fs::file_size(path, error);
    return header.run == options_.run ? static_cast<std::uint32_t>(header.round) : 0;
  } catch (const StoreError& damaged) {
    damage_ = damaged.what();
    return 0;
  }
}

void PeerJournal::open() {
  const fs::path path = file(kRounds);
  try {
    const RegularFile in = open_regular_file(path);
    size_ = read_identity(in, options_.run, options_.clients);
    read_places(in);
  } catch (const FileError& error) {
    throw StoreError("cannot read the state of clients: " + std::string(error.what()));
  }
  file_ = options_.system->open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC, 0);
  if (file_ < 0) fail("open");
  truncate(size_);
  measure_length();
}

// Finds the records up to the first one that is damaged or cut short.
void PeerJournal::read_places(const RegularFile& in) {
  RecordHead head;
  Bytes content;
  while (in.size() - size_ >= sizeof head) {
    in.read(size_, std::as_writable_bytes(std::span(&head, 1)));
    if (head.size > in.size() - size_ - sizeof head) break;
    content.resize(head.size);
    in.read(size_ + sizeof head, content);
    if (head.checksum != checksum_of(head, content)) break;
    places_.push_back({.round = head.round, .before = head.before, .begin = size_, .size = head.size});
    size_ += sizeof head + head.size;
  }
  if (size_ == in.size()) return;
  damage_ = path_text() + " is damaged or cut short after round " +
            std::to_string(places_.empty() ? std::max(base_, recent_) : places_.back().round) + ": " + std::to_string(in.size() - size_) +
            " bytes are left out";
}

std::vector<JournalWay> PeerJournal::ways_to(std::uint32_t round) const {
  std::vector<JournalWay> ways{way_from(JournalSnapshot::none, round)};
  if (base_ > 0 && base_ <= round) ways.push_back(way_from(JournalSnapshot::base, round));
  if (recent_ > 0 && recent_ <= round) ways.push_back(way_from(JournalSnapshot::recent, round));
  std::ranges::reverse(ways);  // of two ways to one round, that with fewer records is better
  std::ranges::stable_sort(ways, std::greater(), &JournalWay::round);
  return ways;
}

JournalWay PeerJournal::way_from(JournalSnapshot snapshot, std::uint32_t round) const {
  const std::uint32_t from = snapshot == JournalSnapshot::base ? base_ : snapshot == JournalSnapshot::recent ? recent_ : 0;
  JournalWay way{.snapshot = snapshot, .from = from, .round = from};
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].before != way.round || places_[i].round > round) continue;
    way.round = places_[i].round;
    way.records.push_back(i);
  }
  return way;
}

RoundRecord PeerJournal::read(std::size_t record) const {
  const Place& place = places_.at(record);
  RecordHead head;
  Bytes content(place.size);
  try {
    const RegularFile in = open_regular_file(file(kRounds));
    in.read(place.begin, std::as_writable_bytes(std::span(&head, 1)));
    in.read(place.begin + sizeof head, content);
    if (head.checksum == checksum_of(head, content)) return {.round = place.round, .before = place.before, .frames = frames_in(content)};
  } catch (const FileError& error) {
    throw StoreError("cannot read the state of clients: " + std::string(error.what()));
  } catch (const ProtocolError&) {  // no frames: as damaged as a wrong checksum
  }
  throw StoreError(path_text() + " is damaged: the record of round " + std::to_string(place.round) + " is not what was written there");
}

CheckpointPlan PeerJournal::plan_of(JournalSnapshot snapshot) const {
  return {.file = file(snapshot == JournalSnapshot::base ? kBase : kRecent),
          .resume = true,
          .system = options_.system,
          .pages = options_.pages};
}

void PeerJournal::append_record(const RoundRecord& record, double seconds) {
  const Bytes bytes = bytes_of(record);
  try {
    write_all(bytes);
    if (options_.system->fsync(file_) != 0) fail("fsync");
  } catch (const StoreError&) {
    (void)!::ftruncate(file_, static_cast<off_t>(size_));  // a record that is cut short would be left out anyway
    throw;
  }
  places_.push_back({.round = record.round, .before = record.before, .begin = size_, .size = bytes.size() - sizeof(RecordHead)});
  size_ += bytes.size();
  long_bytes_ += bytes.size();
  seconds_ += seconds;
}

void PeerJournal::write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    errno = ENOSPC;  // a short write sets no reason of its own
    const std::int64_t written = options_.system->write(file_, bytes.data(), bytes.size());
    if (written <= 0 && errno == EINTR) continue;
    if (written <= 0) fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void PeerJournal::truncate(std::uint64_t size) {
  if (::ftruncate(file_, static_cast<off_t>(size)) != 0) fail("truncate");
  if (options_.system->fsync(file_) != 0) fail("fsync");
  size_ = size;
}

void PeerJournal::forget_after(std::uint32_t round) {
  std::error_code ignored;
  if (recent_ > round) {
    fs::remove(plan_of(JournalSnapshot::recent).file, ignored);
    recent_ = 0;
  }
  if (base_ > round) {
    remove_checkpoint(plan_of(JournalSnapshot::base));
    base_ = 0;
  }
  drop_records_after(round);
  measure_length();
}

void PeerJournal::drop_records_after(std::uint32_t round) {
  const auto first = std::ranges::find_if(places_, [round](const Place& place) { return place.round > round; });
  if (first == places_.end()) return;
  truncate(first->begin);
  places_.erase(first, places_.end());
}

bool PeerJournal::is_long() const {
  return long_bytes_ > std::max(options_.long_bytes, 2 * snapshot_bytes_) || seconds_ > options_.long_seconds;
}

// Counts the records after the last snapshot.
void PeerJournal::measure_length() {
  long_bytes_ = 0;
  seconds_ = 0;
  for (const Place& place : places_)
    if (place.round > std::max(base_, recent_)) long_bytes_ += place.size;
}

void PeerJournal::compact(std::uint32_t round, std::uint32_t saved, const std::string& page_file, const Persist& persist,
                          const std::function<void()>& committed) {
  const bool is_base = round <= saved;
  if (round <= (is_base ? base_ : recent_)) return;
  if (!is_long() && !(is_base && recent_ > 0)) return;  // behind a later snapshot, records between it and the base are missing
  if (!is_base && options_.has_pages) return;           // the page file holds one snapshot, to which the server may still go back
  const CheckpointPlan plan = plan_of(is_base ? JournalSnapshot::base : JournalSnapshot::recent);
  save_checkpoint(plan, {.run = options_.run, .round = round, .pages = is_base ? page_file : ""}, persist);
  std::error_code error;
  snapshot_bytes_ = fs::file_size(plan.file, error);
  if (is_base) {
    committed();
    base_ = round;
    fs::remove(plan_of(JournalSnapshot::recent).file, error);
    recent_ = 0;
    drop_records_after(0);
  } else {
    recent_ = round;
    drop_records_after(saved);  // what the server may go back to is before them
  }
  measure_length();
}

void PeerJournal::forget_snapshots() {
  std::error_code ignored;
  remove_checkpoint(plan_of(JournalSnapshot::base));
  fs::remove(plan_of(JournalSnapshot::recent).file, ignored);
}

void PeerJournal::remove() {
  std::error_code ignored;
  fs::remove(file(kRounds), ignored);  // first: without it nobody reads the snapshots
  forget_snapshots();
}

std::vector<std::string> PeerJournal::runs_in(const fs::path& folder) {
  std::set<std::string> runs;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == kRounds) runs.insert(entry.path().stem().string());
  return {runs.begin(), runs.end()};
}

void PeerJournal::require_clients(const fs::path& folder, const std::string& clients) {
  try {
    for (const std::string& run : runs_in(folder))
      static_cast<void>(read_identity(open_regular_file(folder / (run + kRounds)), run, clients));
  } catch (const FileError& error) {
    throw StoreError("cannot read the state of clients: " + std::string(error.what()));
  }
}

}  // namespace fl::net
