#include "scenarios/data/fetch/unpack.hpp"

#include "fl_core/error.hpp"

#if defined(FL_WITH_LIBARCHIVE)

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>

namespace fl {
namespace {

// An archive that is open for reading.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file), reader_(archive_read_new(), &archive_read_free) {
    archive_read_support_filter_all(reader_.get());
    archive_read_support_format_tar(reader_.get());
    archive_read_support_format_zip(reader_.get());
    if (archive_read_open_filename(reader_.get(), file.c_str(), kBlock) != ARCHIVE_OK) fail();
  }
  // The name of the next file inside; "" at the end.
  std::string next() {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(reader_.get(), &entry);
    if (status == ARCHIVE_EOF) return "";
    if (status != ARCHIVE_OK) fail();
    return archive_entry_pathname(entry);
  }
  std::string contents() {
    std::string bytes;
    for (;;) {
      const std::size_t filled = bytes.size();
      bytes.resize(filled + kBlock);
      const la_ssize_t count = archive_read_data(reader_.get(), bytes.data() + filled, kBlock);
      if (count < 0) fail();
      bytes.resize(filled + static_cast<std::size_t>(count));
      if (count == 0) return bytes;
    }
  }

 private:
  static constexpr std::size_t kBlock = std::size_t{1} << 16;  // bytes
  [[noreturn]] void fail() const { throw DataError(file_.string() + ": the archive is damaged: " + archive_error_string(reader_.get())); }
  std::filesystem::path file_;
  std::unique_ptr<archive, decltype(&archive_read_free)> reader_;
};

}  // namespace

std::vector<std::string> read_members(const std::filesystem::path& file, const std::vector<std::string>& members) {
  std::vector<std::string> contents(members.size());
  std::vector<bool> is_found(members.size());
  Reader reader(file);
  for (std::string name = reader.next(); !name.empty(); name = reader.next()) {
    const auto wanted = static_cast<std::size_t>(std::find(members.begin(), members.end(), name) - members.begin());
    if (wanted == members.size()) continue;
    contents[wanted] = reader.contents();
    is_found[wanted] = true;
  }
  for (std::size_t i = 0; i < members.size(); ++i)
    if (!is_found[i]) throw DataError(file.string() + ": the archive holds no " + members[i]);
  return contents;
}

}  // namespace fl

#else

namespace fl {

std::vector<std::string> read_members(const std::filesystem::path& file, const std::vector<std::string>& members) {
  throw ConfigError("this fedbits was built without libarchive (libarchive-dev on Debian), so it cannot take " + members.front() +
                    " out of " + file.string());
}

}  // namespace fl

#endif
