// A file that appears under its name when it is complete: written under a temporary name beside it and renamed at the end, so that a
// failure leaves what was there before. A target that is no regular file, a device or a pipe, is written directly.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/printable.hpp"

namespace fl {

// Every failure is a StoreError that names the path and the reason.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  [[nodiscard]] std::ostream& stream() { return stream_; }
  // All of it is on the disk, under the temporary name.
  void close();
  void rename();

 private:
  std::filesystem::path asked_, target_, temporary_;
  std::ofstream stream_;
  std::optional<PrintableBuffer> shown_;  // of a terminal
  bool direct_ = false, renamed_ = false;
};

// Prints "WHAT written to A and B" on stderr, so that a table on standard output is that table alone. Leaves out empty paths, pipes and
// everything below /dev, such as /dev/stdout; prints nothing if no path is left.
void tell_written(const std::string& what, const std::vector<std::filesystem::path>& paths);

}  // namespace fl
