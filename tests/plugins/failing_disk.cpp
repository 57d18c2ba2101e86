// A disk that goes wrong: an SQLite VFS in front of the system's own, which fails from the n-th change to a file of the store on.
//
//   FEDBITS_FAILING_DISK="KIND N"    KIND: full    writes fail, everything else goes on, as when space runs out
//                                          flaky   that one change fails
//                                          dead    every change fails from then on, roll-back included
//                                          killed  the process is killed before the change
// Changes are writes, syncs, truncations and deletions. It says on stderr when it fails first.
#include <signal.h>
#include <sqlite3.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "fedbits/plugin.hpp"

namespace fl {
namespace {

class FailingDisk {
 public:
  explicit FailingDisk(const char* plan) {
    char kind[16] = "";
    if (plan == nullptr || std::sscanf(plan, "%15s %d", kind, &left_) != 2) std::abort();
    kind_ = kind;
  }
  // Returns the error of a change that fails, or SQLITE_OK if the change is to be executed.
  int next(int error, bool takes_space) {
    if (--left_ > 0) return SQLITE_OK;
    if (kind_ == "killed") ::raise(SIGKILL);
    if ((kind_ == "full" && !takes_space) || (kind_ == "flaky" && has_failed_)) return SQLITE_OK;
    if (!has_failed_) std::fputs("the disk fails\n", stderr);
    has_failed_ = true;
    return kind_ == "full" ? SQLITE_FULL : error;
  }

 private:
  std::string kind_;
  int left_ = 0;
  bool has_failed_ = false;
};

FailingDisk& disk() {
  static FailingDisk disk(std::getenv("FEDBITS_FAILING_DISK"));
  return disk;
}

// The system's file lies behind ours in one piece of memory.
struct File {
  sqlite3_file base;
};
sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<sqlite3_file*>(reinterpret_cast<File*>(file) + 1); }
const sqlite3_io_methods& methods(sqlite3_file* file) { return *real(file)->pMethods; }

int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
  const int failure = disk().next(SQLITE_IOERR_WRITE, true);
  return failure != SQLITE_OK ? failure : methods(file).xWrite(real(file), bytes, size, at);
}
int truncate(sqlite3_file* file, sqlite3_int64 size) {
  const int failure = disk().next(SQLITE_IOERR_TRUNCATE, false);
  return failure != SQLITE_OK ? failure : methods(file).xTruncate(real(file), size);
}
int sync(sqlite3_file* file, int flags) {
  const int failure = disk().next(SQLITE_IOERR_FSYNC, false);
  return failure != SQLITE_OK ? failure : methods(file).xSync(real(file), flags);
}
int read(sqlite3_file* file, void* bytes, int size, sqlite3_int64 at) { return methods(file).xRead(real(file), bytes, size, at); }
int close(sqlite3_file* file) { return methods(file).xClose(real(file)); }
int file_size(sqlite3_file* file, sqlite3_int64* size) { return methods(file).xFileSize(real(file), size); }
int lock(sqlite3_file* file, int level) { return methods(file).xLock(real(file), level); }
int unlock(sqlite3_file* file, int level) { return methods(file).xUnlock(real(file), level); }
int is_reserved(sqlite3_file* file, int* answer) { return methods(file).xCheckReservedLock(real(file), answer); }
int control(sqlite3_file* file, int what, void* argument) { return methods(file).xFileControl(real(file), what, argument); }
int sector_size(sqlite3_file* file) { return methods(file).xSectorSize(real(file)); }
int characteristics(sqlite3_file* file) { return methods(file).xDeviceCharacteristics(real(file)); }

sqlite3_vfs* g_system = nullptr;

int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  static constexpr sqlite3_io_methods kMethods = {.iVersion = 1,
                                                  .xClose = close,
                                                  .xRead = read,
                                                  .xWrite = write,
                                                  .xTruncate = truncate,
                                                  .xSync = sync,
                                                  .xFileSize = file_size,
                                                  .xLock = lock,
                                                  .xUnlock = unlock,
                                                  .xCheckReservedLock = is_reserved,
                                                  .xFileControl = control,
                                                  .xSectorSize = sector_size,
                                                  .xDeviceCharacteristics = characteristics,
                                                  .xShmMap = nullptr,
                                                  .xShmLock = nullptr,
                                                  .xShmBarrier = nullptr,
                                                  .xShmUnmap = nullptr,
                                                  .xFetch = nullptr,
                                                  .xUnfetch = nullptr};
  file->pMethods = nullptr;  // not to be closed unless it was opened
  const int code = g_system->xOpen(g_system, name, real(file), flags, out_flags);
  if (code == SQLITE_OK) file->pMethods = &kMethods;
  return code;
}

int remove(sqlite3_vfs*, const char* name, int sync_folder) {
  const int failure = disk().next(SQLITE_IOERR_DELETE, false);
  return failure != SQLITE_OK ? failure : g_system->xDelete(g_system, name, sync_folder);
}

const int kRegistered = [] {
  static sqlite3_vfs ours;
  g_system = sqlite3_vfs_find(nullptr);
  ours = *g_system;  // all that is not about changing files
  ours.zName = "failing_disk";
  ours.pNext = nullptr;
  ours.szOsFile = static_cast<int>(sizeof(File)) + g_system->szOsFile;
  ours.xOpen = open;
  ours.xDelete = remove;
  return sqlite3_vfs_register(&ours, 1);
}();

// A plug-in must have a part.
class Unused final : public Partitioner {
 public:
  explicit Unused(const NoOptions&) {}
  [[nodiscard]] std::vector<Shard> split(const PartitionRequest& request) const override { return std::vector<Shard>(request.num_clients); }
};
FL_REGISTER_PARTITIONER(Unused, NoOptions, "failing_disk", "no partitioner: a disk that goes wrong", "");

}  // namespace
}  // namespace fl
