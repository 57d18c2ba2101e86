#include "scenarios/data/fetch/download.hpp"

#include "fl_core/config/error.hpp"

#if defined(FL_WITH_CURL)

#include <curl/curl.h>

#include <algorithm>
#include <memory>

namespace fl {
namespace {

struct Transfer {
  PartFile& part;
  const DownloadProgress& progress;
  std::uint64_t most_bytes = 0;
  std::uint64_t before = 0;  // bytes of earlier attempts
  bool is_too_long = false;
};

std::size_t take(char* bytes, std::size_t, std::size_t count, void* transfer) {
  auto& t = *static_cast<Transfer*>(transfer);
  t.is_too_long = t.is_too_long || count > t.most_bytes - std::min(t.most_bytes, t.part.size());
  return !t.is_too_long && t.part.append(bytes, count) ? count : 0;
}

int show(void* transfer, curl_off_t total, curl_off_t done, curl_off_t, curl_off_t) {
  const auto& t = *static_cast<Transfer*>(transfer);
  if (t.progress) t.progress(t.before + static_cast<std::uint64_t>(done), total > 0 ? t.before + static_cast<std::uint64_t>(total) : 0);
  return 0;
}

// The protocol of an address, as libcurl itself takes it apart. Throws ConfigError for others than those that fedbits supports.
std::string protocol_of(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parts(curl_url(), &curl_url_cleanup);
  const auto part = [&parts](CURLUPart which) {
    char* text = nullptr;
    const bool is_there = curl_url_get(parts.get(), which, &text, 0) == CURLUE_OK;
    const std::string copy = is_there ? text : "";
    curl_free(text);
    return copy;
  };
  if (parts == nullptr || curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
    throw ConfigError(url + ": is no address; use https:// or file://");
  const std::string protocol = part(CURLUPART_SCHEME), host = part(CURLUPART_HOST);
  if (protocol == "https" || protocol == "file") return protocol;
  if (protocol == "http" && (host == "127.0.0.1" || host == "[::1]")) return protocol;
  throw ConfigError(url + ": is an address of " + protocol + "; data are fetched by https:// and from file://" +
                    (protocol == "http" ? ", and by http:// from 127.0.0.1 alone" : ""));
}

#if LIBCURL_VERSION_NUM < 0x075500
long protocol_bits(const std::string& protocol) {
  return protocol == "https" ? CURLPROTO_HTTPS : protocol == "http" ? CURLPROTO_HTTP : CURLPROTO_FILE;
}
#endif

// Returns how data come to a machine that cannot connect to their publisher, "" for other errors.
std::string way_out(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR: break;
    default: return "";
  }
  return "; without a network here, download the files elsewhere (`fedbits data show NAME` prints their addresses), copy them into a "
         "folder "
         "of this machine, and add --from file:///FOLDER";
}

struct Attempt {
  CURLcode code = CURLE_OK;
  long status = 0;   // of HTTP
  std::string text;  // what went wrong
};

// Sets options of libcurl. An option that the library refuses is an error: a silent one would leave its protection out.
class Options {
 public:
  explicit Options(CURL* curl) : curl_(curl) {}
  template <class V>
  void set(CURLoption option, V value) const {
    if (const CURLcode code = curl_easy_setopt(curl_, option, value); code != CURLE_OK)
      throw Error("libcurl does not take option " + std::to_string(static_cast<int>(option)) + ": " + curl_easy_strerror(code));
  }
  // `protocol` alone, and redirects by HTTPS alone.
  void restrict_to(const std::string& protocol) const {
#if LIBCURL_VERSION_NUM >= 0x075500
    set(CURLOPT_PROTOCOLS_STR, protocol.c_str());
    set(CURLOPT_REDIR_PROTOCOLS_STR, "https");
#else
    set(CURLOPT_PROTOCOLS, protocol_bits(protocol));
    set(CURLOPT_REDIR_PROTOCOLS, protocol_bits("https"));
#endif
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (protocol == "http") set(CURLOPT_NOPROXY, "*");  // stays on this machine
  }

 private:
  CURL* curl_;
};

Attempt attempt(const std::string& url, Transfer& transfer) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), &curl_easy_cleanup);
  if (started != CURLE_OK || curl == nullptr) throw Error("libcurl cannot be started");
  char text[CURL_ERROR_SIZE] = "";
  transfer.before = transfer.part.size();
  const Options options(curl.get());
  options.restrict_to(protocol_of(url));
  options.set(CURLOPT_URL, url.c_str());
  options.set(CURLOPT_USERAGENT, "fedbits/" FL_VERSION);
  options.set(CURLOPT_FOLLOWLOCATION, 1L);
  options.set(CURLOPT_MAXREDIRS, 10L);
  options.set(CURLOPT_FAILONERROR, 1L);
  options.set(CURLOPT_NOSIGNAL, 1L);
  options.set(CURLOPT_CONNECTTIMEOUT, 30L);
  options.set(CURLOPT_LOW_SPEED_LIMIT, 1L);  // bytes/s, for as long as
  options.set(CURLOPT_LOW_SPEED_TIME, 60L);
  options.set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(transfer.most_bytes));  // announced; take() counts what is sent
  options.set(CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(transfer.before));
  options.set(CURLOPT_WRITEFUNCTION, &take);
  options.set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  options.set(CURLOPT_NOPROGRESS, 0L);
  options.set(CURLOPT_XFERINFOFUNCTION, &show);
  options.set(CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
  options.set(CURLOPT_ERRORBUFFER, static_cast<char*>(text));
  Attempt result;
  result.code = curl_easy_perform(curl.get());
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &result.status);
  result.text = *text != '\0' ? text : curl_easy_strerror(result.code);
  return result;
}

}  // namespace

bool can_download() { return true; }

Continuation download(const std::string& url, PartFile& part, std::uint64_t most_bytes, const DownloadProgress& progress) {
  constexpr long kRangeNotSatisfiable = 416;  // nothing is left to send, or what is there is longer than the file
  Transfer transfer{part, progress, most_bytes};
  if (part.size() > most_bytes) part.clear();
  Attempt result = attempt(url, transfer);
  const bool cannot_resume = result.code == CURLE_RANGE_ERROR || result.code == CURLE_BAD_DOWNLOAD_RESUME;
  if (transfer.before > 0 && (cannot_resume || transfer.is_too_long || result.code == CURLE_FILESIZE_EXCEEDED)) {
    part.clear();
    transfer.is_too_long = false;
    result = attempt(url, transfer);
  }
  const Continuation continuation = transfer.before > 0 ? Continuation::resumed : Continuation::from_the_start;
  if (result.code == CURLE_OK || (transfer.before > 0 && result.status == kRangeNotSatisfiable)) return continuation;
  if (transfer.is_too_long || result.code == CURLE_FILESIZE_EXCEEDED) {
    part.remove();
    throw DataError(url + ": has more than " + std::to_string(most_bytes) + " bytes, the most that the published file can have");
  }
  if (part.error() != 0) part.fail(part.error());
  throw Error(url + ": " + result.text + kept_text(part.size()) + way_out(result.code));
}

}  // namespace fl

#else

namespace fl {

bool can_download() { return false; }

Continuation download(const std::string& url, PartFile&, std::uint64_t, const DownloadProgress&) {
  throw ConfigError("this fedbits was built without libcurl (libcurl4-openssl-dev on Debian), so it cannot download; get " + url +
                    " by other means");
}

}  // namespace fl

#endif
