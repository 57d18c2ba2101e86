// The system calls that stored results and paged state use. Tests replace single calls to make them fail.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/config/device.hpp"

namespace fl {

class FL_API FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Behave like the system calls of the same names: they return -1 and set errno on failure.
  virtual int open(const char* path, int flags, unsigned mode);
  virtual std::int64_t write(int file, const void* bytes, std::size_t size);
  virtual std::int64_t write_at(int file, const void* bytes, std::size_t size, std::uint64_t offset);  // pwrite
  virtual std::int64_t read_at(int file, void* bytes, std::size_t size, std::uint64_t offset);         // pread
  virtual int fsync(int file);
  virtual int close(int file);
  virtual int rename(const char* from, const char* to);
  static FileSystem& real();
};

}  // namespace fl
