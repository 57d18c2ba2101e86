// The folder of a peer's state may be damaged anywhere: what can be read is what was written, and the rest is named and left out.
//
// net_state   The first byte selects a file of the folder, the rest is a list of changes of it, three bytes each (place, place, value); the
//             value 255 cuts the file off at its place.
#include <array>

#include "fl_core/config/error.hpp"
#include "net/peer/peer_journal.hpp"
#include "net/peer/state_folder.hpp"
#include "tests/fuzz/scratch_folder.hpp"

namespace {

namespace net = fl::net;
using fl::fuzz::require;

constexpr const char* kRun = "00112233445566aa";
constexpr std::uint32_t kLast = 10;
constexpr std::array<const char*, 4> kFiles = {".rounds", ".checkpoint", ".recent", "session"};

net::PeerJournalOptions options(const std::filesystem::path& folder) {
  return {.folder = folder, .run = kRun, .clients = "0-4", .long_bytes = 1 << 20, .long_seconds = 1e9};
}

net::RoundRecord record(std::uint32_t round) {
  net::RoundRecord one{.round = round, .before = round - 2};
  net::Frame open, close;
  open.header.mutable_open()->set_round(round);
  open.payload = net::ReceivedBytes(net::Bytes(20, static_cast<std::byte>(round)));
  close.header.mutable_close()->set_round(round);
  one.frames = {open, close};
  return one;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The files of a peer that has closed five rounds and has two snapshots.
struct Written {
  std::array<std::string, kFiles.size()> bytes{};

  explicit Written(const std::filesystem::path& folder) {
    net::StateFolder(folder, {}).keep_token("0123456789abcdef");
    {
      net::PeerJournalOptions often = options(folder);
      often.long_bytes = 1;
      net::PeerJournal journal(often);
      for (std::uint32_t round = 2; round <= kLast; round += 2) {
        journal.append_record(record(round), 0);
        if (round == 4 || round == 6)
          journal.compact(
              round, round == 4 ? round : 4, "", [round](fl::Archive& archive) mutable { archive.value(round); }, [] {});
      }
    }
    for (std::size_t i = 0; i < kFiles.size(); ++i) bytes[i] = text_of(folder / name_of(i));
  }
  static std::string name_of(std::size_t i) { return kFiles[i][0] == '.' ? std::string(kRun) + kFiles[i] : kFiles[i]; }
};

std::string with_changes(std::string bytes, std::span<const std::byte> changes) {
  for (; changes.size() >= 3 && !bytes.empty(); changes = changes.subspan(3)) {
    const std::size_t place = (std::to_integer<std::size_t>(changes[0]) << 8 | std::to_integer<std::size_t>(changes[1])) % bytes.size();
    if (changes[2] == std::byte{255})
      bytes.resize(place);
    else
      bytes[place] = static_cast<char>(changes[2]);
  }
  return bytes;
}

// Every round that can be reached has the frames that were written for it.
void check_journal(const net::PeerJournal& journal) {
  for (const net::JournalWay& way : journal.ways_to(kLast)) {
    require(way.round <= kLast, "a round was reached that was never played");
    for (const std::size_t i : way.records) {
      const net::RoundRecord found = journal.read(i), written = record(found.round);
      require(found.before == written.before && found.frames.size() == written.frames.size(), "a record is another one");
      for (std::size_t f = 0; f < written.frames.size(); ++f) {
        require(found.frames[f].header.SerializeAsString() == written.frames[f].header.SerializeAsString(), "a header is another one");
        require(found.frames[f].payload == written.frames[f].payload, "a payload is another one");
      }
    }
  }
}

void net_state(std::span<const std::byte> bytes) {
  static const fl::fuzz::ScratchFolder scratch;
  static const Written written(scratch.fresh("written"));
  if (bytes.empty()) return;
  const std::filesystem::path folder = scratch.fresh("state");
  const std::size_t changed = std::to_integer<std::size_t>(bytes[0]) % kFiles.size();
  for (std::size_t i = 0; i < kFiles.size(); ++i) {
    if (written.bytes[i].empty()) continue;
    std::ofstream(folder / Written::name_of(i), std::ios::binary)
        << (i == changed ? with_changes(written.bytes[i], bytes.subspan(1)) : written.bytes[i]);
  }
  try {
    const net::StateFolder state(folder, {});
    require(state.token().size() == (state.damage().empty() ? 16 : 0), "a token of another length was accepted, or a good one left out");
    net::PeerJournal::require_clients(folder, "0-4");
    {
      const net::PeerJournal journal(options(folder));
      check_journal(journal);
    }
    net::PeerJournal again(options(folder));  // what was left out is gone now
    require(again.ways_to(kLast).front().round <= kLast, "a round was reached that was never played");
    again.forget_after(4);
    again.append_record(record(6), 0);
  } catch (const fl::StoreError& error) {
    require(std::string(error.what()).size() > 20, "damage without a word");
  }
}

const fl::fuzz::Register kNetState("net_state", net_state);

}  // namespace
