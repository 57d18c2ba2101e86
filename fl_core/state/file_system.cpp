#include "fl_core/state/file_system.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace fl {

int FileSystem::open(const char* path, int flags, unsigned mode) { return ::open(path, flags, mode); }
std::int64_t FileSystem::write(int file, const void* bytes, std::size_t size) { return ::write(file, bytes, size); }
std::int64_t FileSystem::write_at(int file, const void* bytes, std::size_t size, std::uint64_t offset) {
  return ::pwrite(file, bytes, size, static_cast<off_t>(offset));
}
std::int64_t FileSystem::read_at(int file, void* bytes, std::size_t size, std::uint64_t offset) {
  return ::pread(file, bytes, size, static_cast<off_t>(offset));
}
int FileSystem::fsync(int file) { return ::fsync(file); }
int FileSystem::close(int file) { return ::close(file); }
int FileSystem::rename(const char* from, const char* to) { return std::rename(from, to); }
FileSystem& FileSystem::real() {
  static FileSystem system;
  return system;
}

}  // namespace fl
