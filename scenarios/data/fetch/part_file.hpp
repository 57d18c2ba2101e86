// The file that a download grows in: private, no link, and locked for one process from the download to the end of unpacking.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

class FL_API PartFile {
 public:
  // Opens what an earlier attempt left, or makes the file with permissions for its owner alone. Throws ConfigError: a link, no regular
  // file, another owner's, another process at work on it.
  explicit PartFile(const std::filesystem::path& path);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::uint64_t size() const;
  // Takes all bytes away. Throws Error when the disk fails, as the functions below do.
  void clear();
  // Returns false when the disk does not take all bytes; error() says why.
  [[nodiscard]] bool append(const char* bytes, std::size_t count);
  [[nodiscard]] int error() const { return error_; }
  // Returns all bytes, of the file that was opened and of no other that may stand under its name.
  [[nodiscard]] std::string read_all() const;
  void remove();
  void rename(const std::filesystem::path& to);
  [[noreturn]] void fail(int error) const;

 private:
  [[nodiscard]] bool open_once();
  void close();

  std::filesystem::path path_;
  int descriptor_ = -1, error_ = 0;
};

// Returns "; N bytes are kept, the same command goes on from there", or "" for none.
[[nodiscard]] std::string kept_text(std::uint64_t bytes);

}  // namespace fl
