#include "fl_core/state/checkpoint.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/config/regular_file.hpp"
#include "fl_core/state/checksum.hpp"
#include "fl_core/state/file_turn.hpp"
#include "fl_core/state/page_file.hpp"
#include "fl_core/state/page_index.hpp"

namespace fl {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t kVersion = 8;
// After the content: the byte at which the section of the page file begins (0 = there is none), and the checksum of all before it.
constexpr std::size_t kFooter = 2 * sizeof(std::uint64_t);

[[noreturn]] void fail(const fs::path& file, const std::string& step) {
  const int reason = errno;
  throw StoreError("cannot write the checkpoint " + file.string() + ": " + step + ": " + std::strerror(reason) +
                   "; the one before it, if any, is untouched");
}

// A file that is closed, and taken away again unless it was kept. Processes that save the same run take turns with it.
class TemporaryFile {
 public:
  TemporaryFile(fs::path path, FileSystem& system) : turn_(path), path_(std::move(path)), system_(system) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (file_ >= 0) system_.close(file_);
    if (!kept_) ::unlink(path_.c_str());
  }
  void open() {
    file_ = system_.open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file_ < 0) fail(path_, "open");
  }
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      errno = ENOSPC;  // a short write sets no reason of its own
      const std::int64_t written = system_.write(file_, bytes.data(), bytes.size());
      if (written <= 0 && errno == EINTR) continue;
      if (written <= 0) fail(path_, "write");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  void sync_and_close() {
    if (system_.fsync(file_) != 0) fail(path_, "fsync");
    const int file = std::exchange(file_, -1);
    if (system_.close(file) != 0) fail(path_, "close");
  }
  void rename_to(const fs::path& target) {
    if (system_.rename(path_.c_str(), target.c_str()) != 0) fail(target, "rename");
    kept_ = true;
  }

 private:
  FileTurn turn_;
  fs::path path_;
  FileSystem& system_;
  int file_ = -1;
  bool kept_ = false;
};

void sync_folder(const fs::path& folder, FileSystem& system) {
  const int file = system.open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (file < 0) fail(folder, "open the folder");
  const int synced = system.fsync(file);
  system.close(file);
  if (synced != 0) fail(folder, "fsync of the folder");
}

fs::path temporary_of(const fs::path& file) { return file.string() + ".tmp"; }

std::vector<std::byte> read_file(const fs::path& file) {
  try {
    const RegularFile in = open_regular_file(file);
    std::vector<std::byte> bytes(in.size());
    in.read(0, bytes);
    return bytes;
  } catch (const FileError& error) {
    throw StoreError("cannot read the checkpoint " + std::string(error.what()));
  }
}

[[noreturn]] void refuse_checkpoint(const fs::path& file, const std::string& why) {
  throw StoreError("the checkpoint " + file.string() + " cannot be used: " + why + "; without it (remove the file) the run starts anew");
}

void exchange_header(Archive& archive, CheckpointHeader& header, std::uint32_t& version, std::string& build) {
  archive.section("fedbits checkpoint");
  archive.value(version);
  archive.text(build);
  archive.text(header.run);
  archive.value(header.round);
  archive.value(header.seconds);
  archive.text(header.pages);
}

// A checkpoint's bytes whose checksum was compared.
struct Checked {
  std::span<const std::byte> content;
  std::uint64_t pages_begin = 0;  // of the section of the page file; 0 = there is none
};

Checked checked(const fs::path& file, std::span<const std::byte> bytes) {
  if (bytes.size() < kFooter) refuse_checkpoint(file, "it has " + std::to_string(bytes.size()) + " bytes");
  Checked result{.content = bytes.first(bytes.size() - kFooter)};
  std::uint64_t checksum = 0;
  std::memcpy(&result.pages_begin, bytes.data() + result.content.size(), sizeof checksum);
  std::memcpy(&checksum, bytes.data() + bytes.size() - sizeof checksum, sizeof checksum);
  if (checksum != hash64_of(bytes.first(bytes.size() - sizeof checksum))) refuse_checkpoint(file, "its bytes do not match their checksum");
  return result;
}

void read_header(const fs::path& file, Archive& archive, CheckpointHeader& header, std::string& build) {
  std::uint32_t version = 0;
  exchange_header(archive, header, version, build);
  if (!(header.seconds >= 0) || std::isinf(header.seconds))
    refuse_checkpoint(file, "it tells of " + std::to_string(header.seconds) + " seconds");
  if (version != kVersion)
    refuse_checkpoint(file, "it has version " + std::to_string(version) + ", this fedbits reads " + std::to_string(kVersion));
}

// Without the tag of the folder: "RUN" of "RUN" or "RUN.TAG".
std::string run_of(const std::string& owner) { return owner.substr(0, owner.find('.')); }

// The same whether the folder is there yet or not.
fs::path place_in_checkpoint(const fs::path& folder) { return fs::absolute(folder).lexically_normal(); }

std::string tag_of(const fs::path& checkpoints) {
  const std::string place = place_in_checkpoint(checkpoints).string();
  return to_hex(hash64_of(std::as_bytes(std::span(place)))).substr(0, 8);
}

std::string page_file_name(const std::string& run, const fs::path& checkpoints, const fs::path& pages) {
  return place_in_checkpoint(checkpoints) == place_in_checkpoint(pages) ? run : run + "." + tag_of(checkpoints);
}

// Returns the page file that a checkpoint refers to, or "" if it refers to none or cannot be read.
std::string pages_of(const fs::path& checkpoint) {
  constexpr std::size_t kMostBytes = 4096;  // of its header
  try {
    const RegularFile in = open_regular_file(checkpoint);
    std::vector<std::byte> bytes(std::min<std::uint64_t>(in.size(), kMostBytes));
    in.read(0, bytes);
    Archive archive(bytes);
    CheckpointHeader header;
    std::uint32_t version = 0;
    std::string build;
    exchange_header(archive, header, version, build);
    return version == kVersion ? header.pages : "";
  } catch (const ArchiveError&) {
    return "";
  } catch (const FileError&) {
    return "";
  }
}

template <class Each>
void for_each_page_file(const fs::path& folder, const Each& each) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (!owner_of_page_file(at->path()).empty()) found.push_back(at->path());
  for (const fs::path& path : found) each(path);
}

}  // namespace

void remove_checkpoint(const CheckpointPlan& plan) {
  if (plan.file.empty()) return;
  std::error_code ignored;
  fs::remove(plan.file, ignored);
  if (const fs::path temporary = temporary_of(plan.file); fs::exists(temporary, ignored))
    if (const FileTurn turn(temporary, FileTurn::Wait::no); turn.is_held()) fs::remove(temporary, ignored);
  for_each_page_file(plan.pages_folder(), [owner = page_file_name(plan)](const fs::path& path) {
    if (owner_of_page_file(path) == owner) (void)remove_page_file(path);
  });
}

std::string page_file_name(const CheckpointPlan& plan) {
  return page_file_name(plan.file.stem().string(), plan.file.parent_path(), plan.pages_folder());
}

void remove_leftover_pages(const fs::path& checkpoints, const fs::path& pages) {
  for_each_page_file(pages, [&](const fs::path& path) {
    const std::string owner = owner_of_page_file(path), run = run_of(owner);
    if (owner != page_file_name(run, checkpoints, pages)) return;  // another study's
    if (pages_of(checkpoints / (run + ".checkpoint")) != path.filename().string()) (void)remove_page_file(path);
  });
}

void write_atomically(const fs::path& file, std::span<const std::byte> bytes, FileSystem& system) {
  TemporaryFile temporary(temporary_of(file), system);
  temporary.open();
  temporary.write(bytes);
  temporary.sync_and_close();
  temporary.rename_to(file);
  sync_folder(file.parent_path(), system);
}

std::string build_fingerprint() {
  std::string text = std::string("fedbits ") + FL_VERSION + ", ";
#if defined(__clang__)
  text += "clang " __clang_version__;
#else
  text += "gcc " __VERSION__;
#endif
#if defined(__AVX512F__)
  text += ", AVX-512";
#elif defined(__AVX2__)
  text += ", AVX2";
#endif
#if defined(FL_WITH_ONEDNN)
  text += ", oneDNN";
#endif
#if !defined(__OPTIMIZE__)
  text += ", not optimised";
#endif
  return text;
}

void save_checkpoint(const CheckpointPlan& plan, CheckpointHeader header, const Persist& persist) {
  Archive archive;
  std::uint32_t version = kVersion;
  std::string build = build_fingerprint();
  exchange_header(archive, header, version, build);
  persist(archive);
  std::uint64_t pages_begin = archive.begin_of(PageIndex::kSection);
  archive.value(pages_begin);
  std::uint64_t checksum = hash64_of(archive.bytes());
  archive.value(checksum);
  std::error_code error;
  fs::create_directories(plan.file.parent_path(), error);
  write_atomically(plan.file, archive.bytes(), *plan.system);
}

bool load_checkpoint(const CheckpointPlan& plan, CheckpointHeader& header, const Persist& persist) {
  std::error_code error;
  if (!fs::exists(plan.file, error)) return false;
  const std::vector<std::byte> bytes = read_file(plan.file);
  try {
    Archive archive(checked(plan.file, bytes).content);
    CheckpointHeader found;
    std::string build;
    read_header(plan.file, archive, found, build);
    if (found.run != header.run) refuse_checkpoint(plan.file, "it belongs to run " + found.run + ", not to " + header.run);
    if (build != build_fingerprint() && !plan.any_build)
      refuse_checkpoint(plan.file, "it was written by another build (" + build + "; this is " + build_fingerprint() +
                                       "), whose rounding may differ; --any-build takes it nevertheless");
    header = found;
    persist(archive);
    archive.finish();
  } catch (const ArchiveError& damaged) {
    refuse_checkpoint(plan.file, damaged.what());
  }
  return true;
}

void peek_checkpoint(const fs::path& file, CheckpointHeader& header, const Persist& persist) {
  const std::vector<std::byte> bytes = read_file(file);
  try {
    Archive archive(checked(file, bytes).content);
    std::string build;
    read_header(file, archive, header, build);
    persist(archive);
  } catch (const ArchiveError& damaged) {
    throw StoreError("the checkpoint " + file.string() + " cannot be read: " + damaged.what());
  }
}

namespace {

// The page file of a checkpoint, whose name the header and the index must agree on.
std::vector<std::string> damage_of_pages(const Checked& found, const CheckpointHeader& header, const fs::path& folder) {
  if (found.pages_begin == 0)
    return header.pages.empty() ? std::vector<std::string>{} : std::vector{"it lacks the places of " + header.pages};
  if (found.pages_begin > found.content.size()) throw ArchiveError("the places of its state file begin after its end");
  Archive archive(found.content.subspan(found.pages_begin));
  PageIndex index;
  index.persist(archive);
  index.validate(std::numeric_limits<std::uint32_t>::max(), index.record_bytes);
  if (index.name != header.pages) throw ArchiveError("it names two state files, '" + header.pages + "' and '" + index.name + "'");
  return damage_of(index, folder);
}

}  // namespace

std::vector<std::string> damage_of_checkpoint(const fs::path& file, const fs::path& pages) {
  constexpr int kTries = 5;
  std::vector<std::string> damage;
  for (int i = 0; i < kTries; ++i) {
    std::vector<std::byte> bytes;
    damage.clear();
    try {
      bytes = read_file(file);
      const Checked found = checked(file, bytes);
      Archive archive(found.content);
      CheckpointHeader header;
      std::string build;
      read_header(file, archive, header, build);
      damage = damage_of_pages(found, header, pages.empty() ? file.parent_path() : pages);
    } catch (const ArchiveError& error) {
      damage = {"the checkpoint " + file.string() + " cannot be used: " + error.what()};
    } catch (const StoreError& error) {
      damage = {error.what()};
    }
    std::error_code error;
    if (damage.empty() || !fs::exists(file, error)) break;
    try {
      if (read_file(file) == bytes) break;  // else a run has made another meanwhile, and writes over the places of this one
    } catch (const StoreError&) {
      break;
    }
  }
  return damage;
}

}  // namespace fl
