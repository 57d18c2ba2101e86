#include "study/output/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "fl_core/config/error.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_writing(const fs::path& path, const std::string& reason) {
  throw StoreError("cannot write " + path.string() + ": " + reason + "; choose a writable place with free space");
}

// Temporary files that are being written. A signal handler removes them, and it must not allocate memory.
constexpr std::size_t kMostFiles = 8, kMostBytes = 4096;
char g_temporary[kMostFiles][kMostBytes];

void remove_and_end(int signal) {
  for (const auto& path : g_temporary)
    if (path[0] != '\0') ::unlink(path);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

bool is_terminal(const fs::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return false;
  const bool terminal = ::isatty(file) == 1;
  ::close(file);
  return terminal;
}

// Installs the clean-up handler for a signal, unless the signal is already caught or ignored.
void clean_up_on(int signal) {
  struct sigaction now {};
  if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) ::signal(signal, remove_and_end);
}

void remember(const fs::path& path) {
  for (auto& slot : g_temporary) {
    if (slot[0] != '\0' || path.native().size() >= kMostBytes) continue;
    std::strcpy(slot, path.c_str());
    break;
  }
}

void forget(const fs::path& path) {
  for (auto& slot : g_temporary)
    if (path == slot) slot[0] = '\0';
}

}  // namespace

void remove_unfinished_files_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) clean_up_on(signal);
}

OutputFile::OutputFile(const fs::path& path) : asked_(path), target_(path) {
  std::error_code ignored;
  direct_ = fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);  // a link to a pipe has no target path
  if (!direct_ && fs::is_symlink(path, ignored)) target_ = fs::weakly_canonical(path, ignored);
  temporary_ = direct_ ? target_ : fs::path(target_.string() + ".tmp" + std::to_string(::getpid()));
  if (!direct_) remember(temporary_);
  errno = 0;
  stream_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!stream_) fail_writing(asked_, std::strerror(errno));
  if (direct_ && is_terminal(temporary_)) static_cast<std::ios&>(stream_).rdbuf(&shown_.emplace(*stream_.rdbuf()));
}

OutputFile::~OutputFile() {
  std::error_code ignored;
  if (!direct_ && !renamed_) fs::remove(temporary_, ignored);
  forget(temporary_);
}

void OutputFile::close() {
  if (!stream_.flush()) fail_writing(asked_, "not all of it could be written, the disk may be full");
  stream_.close();
  if (!stream_) fail_writing(asked_, "it could not be closed, the disk may be full");
}

void OutputFile::rename() {
  if (direct_) return;
  std::error_code error;
  fs::rename(temporary_, target_, error);
  if (error) fail_writing(asked_, error.message());
  renamed_ = true;
}

}  // namespace fl
