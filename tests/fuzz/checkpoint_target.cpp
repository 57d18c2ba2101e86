// A paused run continues from any checkpoint and any page file, or rejects them; nothing else may happen.
//
// checkpoint   The first byte selects the rest: if it is even, the rest is a whole checkpoint except for its checksum; if it is odd,
//              the rest is a list of changes, three bytes each (place, place, value), of a checkpoint that this program wrote. The
//              checksum is corrected, so that the code behind its check is reached.
// page_file    Changes as above of a page file, under a good checkpoint. Either no change is in a record and the results are the same,
//              or the run is rejected.
#include <memory>

#include "tests/fuzz/target.hpp"
#include "tests/support/paused_run.hpp"

namespace {

using fl::fuzz::require;
using fl::test::PausedRun;
using PausedBytes = PausedRun::Bytes;

PausedRun& paused() {
  static const auto run = std::make_unique<PausedRun>(6000);
  return *run;
}

PausedBytes with_changes(PausedBytes bytes, std::span<const std::byte> changes) {
  for (; changes.size() >= 3; changes = changes.subspan(3)) {
    const std::size_t place = std::to_integer<std::size_t>(changes[0]) << 8 | std::to_integer<std::size_t>(changes[1]);
    bytes[place % bytes.size()] = static_cast<char>(changes[2]);
  }
  return bytes;
}

void checkpoint(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  PausedRun& run = paused();
  const std::span<const std::byte> rest = bytes.subspan(1);
  PausedBytes whole;
  if ((bytes[0] & std::byte{1}) != std::byte{0}) {
    whole = with_changes(run.checkpoint, rest);
  } else {
    for (const std::byte b : rest) whole.push_back(static_cast<char>(b));
    whole.resize(whole.size() + sizeof(std::uint64_t));
  }
  PausedRun::seal(whole);
  run.put(whole, run.pages);
  (void)run.damage();
  (void)run.refusal();
}

void page_file(std::span<const std::byte> bytes) {
  PausedRun& run = paused();
  const PausedBytes pages = with_changes(run.pages, bytes);
  run.put(run.checkpoint, pages);
  const bool is_damaged = !run.damage().empty();
  const bool is_refused = run.refusal().has_value();
  require(is_damaged == is_refused, "the check and the run disagree on a page file");
  require(is_refused || run.is_same(), "a damaged page file gave other results");
}

const fl::fuzz::Register kCheckpoint("checkpoint", checkpoint);
const fl::fuzz::Register kPageFile("page_file", page_file);

}  // namespace
