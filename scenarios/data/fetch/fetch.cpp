#include "scenarios/data/fetch/fetch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "fl_core/config/error.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/fetch/unpack.hpp"
#include "scenarios/data/find_file.hpp"
#include "scenarios/data/sha256.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

std::string sha256_of_text(const std::string& text) { return sha256_of(std::as_bytes(std::span<const char>(text))); }

std::string last_part(const std::string& url) { return url.substr(url.rfind('/') + 1); }

// Writes `bytes` under a name of its own and renames it when all of it is on the disk.
void write_whole(const fs::path& file, const std::string& bytes) {
  const fs::path fresh = file.string() + ".new";
  ::unlink(fresh.c_str());  // of an attempt that was cut off; a link is removed and not followed
  const int out = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  int error = out < 0 ? errno : 0;
  for (std::size_t done = 0; error == 0 && done < bytes.size();) {
    const ssize_t count = ::write(out, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno != EINTR) error = errno;
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  if (out >= 0 && error == 0 && ::fsync(out) != 0) error = errno;
  if (out >= 0 && ::close(out) != 0 && error == 0) error = errno;
  std::error_code rename_error;
  if (error == 0) fs::rename(fresh, file, rename_error);
  if (error == 0 && !rename_error) return;
  std::error_code ignored;
  fs::remove(fresh, ignored);
  throw Error(file.string() + ": cannot be written: " + (error != 0 ? std::strerror(error) : rename_error.message()));
}

// Files that are there with the right contents are left alone; others are in the way. Returns those that are missing.
std::vector<DataFile> missing_files(const DataInfo& info, const fs::path& folder, const FetchListener& listener) {
  std::vector<Problem> in_the_way;
  std::vector<DataFile> missing;
  for (const DataFile& file : info.files) {
    const auto there = find_plain_or_packed(folder / file.path);
    if (!there) {
      missing.push_back(file);
      continue;
    }
    if (!file.sha256.empty() && sha256_of_text(read_data_file(*there)) != file.sha256)
      in_the_way.push_back({"", there->string() + ": is there with another checksum than the published file; move it away first"});
    else
      listener.end(*there, true);
  }
  if (!in_the_way.empty()) throw ConfigError(std::move(in_the_way));
  return missing;
}

// One download, and the files that come out of it.
struct Source {
  std::string url;
  fs::path part;
  std::uint64_t most_bytes = 0;  // of the download
  std::vector<DataFile> files;
  [[nodiscard]] bool is_archive() const { return !files.front().member.empty(); }
  [[nodiscard]] const std::string& sha256() const {  // of the download
    return files.front().download_sha256.empty() ? files.front().sha256 : files.front().download_sha256;
  }
};

// The most bytes that `url` delivers for a set: those of all files that come out of it, and some for what packing adds.
std::uint64_t most_bytes_of(const DataInfo& info, const std::string& url) {
  constexpr std::uint64_t kPacking = std::uint64_t{1} << 20, kUnknown = std::uint64_t{1} << 32;
  std::uint64_t bytes = kPacking;
  for (const DataFile& file : info.files) {
    if (file.url != url) continue;
    if (file.most_bytes == 0) return kUnknown;
    bytes += file.most_bytes;
  }
  return bytes;
}

std::vector<Source> sources_of(const DataInfo& info, const std::vector<DataFile>& files, const FetchOptions& options) {
  std::vector<Source> sources;
  for (const DataFile& file : files) {
    if (!sources.empty() && sources.back().url == file.url) {
      sources.back().files.push_back(file);
      continue;
    }
    sources.push_back(
        {file.url, (options.folder / file.path).parent_path() / (last_part(file.url) + ".part"), most_bytes_of(info, file.url), {file}});
  }
  for (Source& source : sources) {
    if (source.sha256().empty() || (source.is_archive() && source.files.front().download_sha256.empty()))
      throw ConfigError("no checksum is known of what " + source.url + " delivers, and nothing is unpacked without; get " +
                        source.files.front().path + " by other means");
    if (!options.from.empty()) source.url = options.from + (options.from.ends_with('/') ? "" : "/") + last_part(source.url);
  }
  return sources;
}

std::uint64_t most_bytes_of(const DataFile& file) { return file.most_bytes > 0 ? file.most_bytes : kMostPackedText; }

// The contents of the files of a download, in their order, unpacked after its checksum has been found right. Throws DataError: damaged, or
// another checksum or size than expected.
std::vector<std::string> contents_of(const Source& source, std::string download) {
  const auto require = [&source](const std::string& what, const std::string& bytes, const std::string& sha256) {
    const std::string found = sha256_of_text(bytes);
    if (found != sha256) throw DataError(source.url + ": " + what + " has the checksum " + found + ", expected " + sha256);
  };
  const DataFile& first = source.files.front();
  if (first.download_sha256.empty()) {
    require(first.path, download, first.sha256);
    return {std::move(download)};
  }
  require("the download", download, first.download_sha256);
  const auto bytes = std::as_bytes(std::span<const char>(download));
  std::vector<std::string> contents;
  if (source.is_archive()) {
    std::vector<ArchiveMember> members;
    for (const DataFile& file : source.files) members.push_back({file.member, most_bytes_of(file)});
    contents = read_members(bytes, source.url, members);
  } else {
    DataReader reader(bytes, source.url);
    if (reader.size_up_to(static_cast<std::size_t>(most_bytes_of(first)) + 1) > most_bytes_of(first))
      throw DataError(source.url + ": unpacks to more than " + std::to_string(most_bytes_of(first)) + " bytes, the most that " +
                      first.path + " can have");
    contents.push_back(std::move(reader).take());
  }
  for (std::size_t i = 0; i < contents.size(); ++i)
    if (!source.files[i].sha256.empty()) require(source.files[i].path, contents[i], source.files[i].sha256);
  return contents;
}

// Downloads and checks; where an earlier attempt was continued, it may have been of another version, so it is tried once more from the
// start.
std::vector<std::string> get(const Source& source, PartFile& part, const FetchListener& listener) {
  for (;;) {
    const Continuation continuation = download(source.url, part, source.most_bytes, listener.progress);
    try {
      return contents_of(source, part.read_all());
    } catch (const DataError& error) {
      if (continuation == Continuation::resumed) {
        part.clear();
        continue;
      }
      const fs::path rejected = fs::path(source.part).replace_extension(".rejected");
      part.rename(rejected);
      throw DataError(std::string(error.what()) + "; what was downloaded is kept as " + rejected.string());
    }
  }
}

void fetch_source(const Source& source, const FetchOptions& options, const FetchListener& listener) {
  listener.begin(source.url);
  PartFile part(source.part);
  const std::vector<std::string> contents = get(source, part, listener);
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    write_whole(options.folder / source.files[i].path, contents[i]);
    listener.end(options.folder / source.files[i].path, false);
  }
  part.remove();
}

}  // namespace

void fetch_data(const DataInfo& info, const FetchOptions& options, const FetchListener& listener) {
  for (const DataFile& file : info.files)
    if (file.url.empty())
      throw ConfigError("the data set \"" + info.name + "\" has no publisher to fetch " + file.path + " from: " + info.publisher);
  for (const Source& source : sources_of(info, missing_files(info, options.folder, listener), options)) {
    std::error_code error;
    fs::create_directories(source.part.parent_path(), error);
    if (error) throw ConfigError(source.part.parent_path().string() + ": cannot be made: " + error.message());
    fetch_source(source, options, listener);
  }
}

}  // namespace fl
