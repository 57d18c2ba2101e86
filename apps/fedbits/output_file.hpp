// A file that appears under its name only when it is complete. It is written under a temporary name in the same folder and renamed at the
// end, so a failure keeps the previous file. A target that is not a regular file, such as a device or a pipe, is written directly.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/printable.hpp"

namespace fl {

// Every failure throws a StoreError that names the path and the reason.
class OutputFile {
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

// Prints "WHAT written to A and B" on stderr, so that standard output contains only the table. Omits empty paths, pipes and everything
// below /dev, such as /dev/stdout; prints nothing if no path is left.
void tell_written(const std::string& what, const std::vector<std::filesystem::path>& paths);

}  // namespace fl
