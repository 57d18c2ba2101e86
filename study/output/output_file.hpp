// A file that appears under its name only when it is complete. It is written under a temporary name in the same folder and renamed at the
// end, so a failure keeps the previous file. A target that is not a regular file, such as a device or a pipe, is written directly.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>

#include "fl_core/config/device.hpp"
#include "fl_core/config/printable.hpp"

namespace fl {

// Every failure throws a StoreError that names the path and the reason.
class FL_API OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  [[nodiscard]] std::ostream& stream() { return stream_; }
  // Writes all data to the disk, under the temporary name.
  void close();
  void rename();

 private:
  std::filesystem::path asked_, target_, temporary_;
  std::ofstream stream_;
  std::optional<PrintableBuffer> shown_;  // used if the target is a terminal
  bool direct_ = false, renamed_ = false;
};

// Lets SIGINT, SIGTERM and SIGHUP remove the temporary files of this process before they end it; a signal that is caught or ignored already
// stays as it is. For programs: a library must not do so on its own.
FL_API void remove_unfinished_files_on_signals();

}  // namespace fl
