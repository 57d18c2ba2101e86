#include "scenarios/data/fetch/unpack.hpp"

#include "fl_core/config/error.hpp"

#if defined(FL_WITH_LIBARCHIVE)

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace fl {
namespace {

// A file or folder inside of an archive.
struct Entry {
  std::string name;  // "" at the end
  std::uint64_t announced_bytes = 0;
};

// An archive that is open for reading.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& name) : name_(name), reader_(archive_read_new(), &archive_read_free) {
    // By their names: all that libarchive supports would include filters that start programs. It also starts one for gzip when it was built
    // without zlib, which it says with a warning.
    if (archive_read_support_filter_gzip(reader_.get()) != ARCHIVE_OK)
      throw ConfigError("libarchive was built without zlib and would start a program to unpack gzip; fedbits does not let it");
    require(archive_read_support_format_tar(reader_.get()));
    require(archive_read_support_format_zip(reader_.get()));
    require(archive_read_open_memory(reader_.get(), bytes.data(), bytes.size()));
  }
  Entry next() {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(reader_.get(), &entry);
    if (status == ARCHIVE_EOF) return {};
    require(status);
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr || *name == '\0') refuse("a member without a name");
    check(entry, name);
    const std::int64_t size = archive_entry_size_is_set(entry) != 0 ? archive_entry_size(entry) : 0;
    if (size < 0) refuse(std::string("a member of negative size, ") + name);
    return {name, static_cast<std::uint64_t>(size)};
  }
  std::string contents(const Entry& entry, std::uint64_t most_bytes) {
    const auto refuse_size = [&] {
      throw DataError(name_ + ": " + entry.name + " has more than " + std::to_string(most_bytes) + " bytes, the most that it can have");
    };
    if (entry.announced_bytes > most_bytes) refuse_size();
    std::string bytes, piece(kPiece, '\0');
    for (;;) {
      const la_ssize_t count = archive_read_data(reader_.get(), piece.data(), piece.size());
      if (count < 0) fail();
      if (count == 0) return bytes;
      if (static_cast<std::uint64_t>(count) > most_bytes - bytes.size()) refuse_size();
      bytes.append(piece.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 16;  // bytes

  void require(int status) const {
    if (status != ARCHIVE_OK) fail();
  }
  [[noreturn]] void fail() const {
    const char* why = archive_error_string(reader_.get());
    throw DataError(name_ + ": the archive is damaged: " + (why != nullptr ? why : "it cannot be read"));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError(name_ + ": the archive holds " + what + "; it is not unpacked");
  }
  void check(archive_entry* entry, const std::string& name) const {
    const std::filesystem::path path(name);
    if (archive_entry_symlink(entry) != nullptr || archive_entry_hardlink(entry) != nullptr) refuse("a link, " + name);
    const auto type = archive_entry_filetype(entry);
    if (type != AE_IFREG && type != AE_IFDIR) refuse("something that is neither file nor folder, " + name);
    if (path.is_absolute()) refuse("a member with an absolute name, " + name);
    if (std::find(path.begin(), path.end(), "..") != path.end()) refuse("a member with .. in its name, " + name);
  }

  std::string name_;
  std::unique_ptr<archive, decltype(&archive_read_free)> reader_;
};

}  // namespace

std::vector<std::string> read_members(std::span<const std::byte> archive, const std::string& name,
                                      const std::vector<ArchiveMember>& members) {
  std::vector<std::string> contents(members.size());
  std::vector<bool> is_found(members.size());
  Reader reader(archive, name);
  for (Entry entry = reader.next(); !entry.name.empty(); entry = reader.next()) {
    const auto place = std::find_if(members.begin(), members.end(), [&](const ArchiveMember& m) { return m.name == entry.name; });
    if (place == members.end()) continue;
    const auto wanted = static_cast<std::size_t>(place - members.begin());
    if (is_found[wanted]) throw DataError(name + ": the archive holds " + entry.name + " twice");
    contents[wanted] = reader.contents(entry, place->most_bytes);
    is_found[wanted] = true;
  }
  for (std::size_t i = 0; i < members.size(); ++i)
    if (!is_found[i]) throw DataError(name + ": the archive holds no " + members[i].name);
  return contents;
}

}  // namespace fl

#else

namespace fl {

std::vector<std::string> read_members(std::span<const std::byte>, const std::string& name, const std::vector<ArchiveMember>& members) {
  throw ConfigError("this fedbits was built without libarchive (libarchive-dev on Debian), so it cannot take " + members.front().name +
                    " out of " + name);
}

}  // namespace fl

#endif
