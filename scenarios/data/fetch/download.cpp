#include "scenarios/data/fetch/download.hpp"

#include "fl_core/error.hpp"

#if defined(FL_WITH_CURL)

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace fl {
namespace {

std::string kept_text(std::uint64_t bytes) {
  return bytes == 0 ? "" : "; " + std::to_string(bytes) + " bytes are kept, the same command goes on from there";
}

// The file that grows, locked for one process.
class PartFile {
 public:
  explicit PartFile(const std::filesystem::path& path) : path_(path) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw ConfigError(path.string() + ": cannot be written: " + std::strerror(errno));
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
    ::close(descriptor_);
    throw ConfigError(path.string() + ": another process is downloading this file");
  }
  ~PartFile() { ::close(descriptor_); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  [[nodiscard]] std::uint64_t size() const {
    struct stat facts {};
    ::fstat(descriptor_, &facts);
    return static_cast<std::uint64_t>(facts.st_size);
  }
  void clear() {
    if (::ftruncate(descriptor_, 0) != 0) fail(errno);
  }
  // False when the disk does not take them all; error() says why.
  bool append(const char* bytes, std::size_t count) {
    while (count > 0) {
      const ssize_t written = ::write(descriptor_, bytes, count);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        error_ = errno;
        return false;
      }
      bytes += written;
      count -= static_cast<std::size_t>(written);
    }
    return true;
  }
  [[nodiscard]] int error() const { return error_; }
  [[noreturn]] void fail(int error) const {
    throw Error(path_.string() + ": cannot be written: " + std::strerror(error) + kept_text(size()));
  }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1, error_ = 0;
};

struct Transfer {
  PartFile& part;
  const DownloadProgress& progress;
  std::uint64_t before = 0;  // bytes of earlier attempts
};

std::size_t take(char* bytes, std::size_t, std::size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->part.append(bytes, count) ? count : 0;
}

int show(void* transfer, curl_off_t total, curl_off_t done, curl_off_t, curl_off_t) {
  const auto& t = *static_cast<Transfer*>(transfer);
  if (t.progress) t.progress(t.before + static_cast<std::uint64_t>(done), total > 0 ? t.before + static_cast<std::uint64_t>(total) : 0);
  return 0;
}

struct Attempt {
  CURLcode code = CURLE_OK;
  long status = 0;   // of HTTP
  std::string text;  // what went wrong
};

Attempt attempt(const std::string& url, Transfer& transfer) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), &curl_easy_cleanup);
  if (started != CURLE_OK || curl == nullptr) throw Error("libcurl cannot be started");
  char text[CURL_ERROR_SIZE] = "";
  transfer.before = transfer.part.size();
  const auto set = [&curl](CURLoption option, auto value) { curl_easy_setopt(curl.get(), option, value); };
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_USERAGENT, "fedbits/" FL_VERSION);
  set(CURLOPT_PROTOCOLS_STR, "https,http,file");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "https,http");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 10L);
  set(CURLOPT_FAILONERROR, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT, 30L);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);  // bytes/s, for as long as
  set(CURLOPT_LOW_SPEED_TIME, 60L);
  set(CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(transfer.before));
  set(CURLOPT_WRITEFUNCTION, &take);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &show);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(text));
  Attempt result;
  result.code = curl_easy_perform(curl.get());
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &result.status);
  result.text = *text != '\0' ? text : curl_easy_strerror(result.code);
  return result;
}

}  // namespace

Continuation download(const std::string& url, const std::filesystem::path& path, const DownloadProgress& progress) {
  constexpr long kRangeNotSatisfiable = 416;  // nothing is left to send, or what is there is longer than the file
  PartFile part(path);
  Transfer transfer{part, progress};
  Attempt result = attempt(url, transfer);
  const bool cannot_resume = result.code == CURLE_RANGE_ERROR || result.code == CURLE_BAD_DOWNLOAD_RESUME;
  if (transfer.before > 0 && cannot_resume) {
    part.clear();
    result = attempt(url, transfer);
  }
  const Continuation continuation = transfer.before > 0 ? Continuation::resumed : Continuation::from_the_start;
  if (result.code == CURLE_OK || (transfer.before > 0 && result.status == kRangeNotSatisfiable)) return continuation;
  if (part.error() != 0) part.fail(part.error());
  throw Error(url + ": " + result.text + kept_text(part.size()));
}

}  // namespace fl

#else

namespace fl {

Continuation download(const std::string& url, const std::filesystem::path&, const DownloadProgress&) {
  throw ConfigError("this fedbits was built without libcurl (libcurl4-openssl-dev on Debian), so it cannot download; get " + url +
                    " by other means");
}

}  // namespace fl

#endif
