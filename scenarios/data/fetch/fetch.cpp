#include "scenarios/data/fetch/fetch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "fl_core/error.hpp"
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
  const int out = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
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
  std::vector<DataFile> files;
};

std::vector<Source> sources_of(const std::vector<DataFile>& files, const FetchOptions& options) {
  std::vector<Source> sources;
  for (const DataFile& file : files) {
    if (!sources.empty() && sources.back().url == file.url) {
      sources.back().files.push_back(file);
      continue;
    }
    sources.push_back({file.url, (options.folder / file.path).parent_path() / (last_part(file.url) + ".part"), {file}});
  }
  for (Source& source : sources)
    if (!options.from.empty()) source.url = options.from + (options.from.ends_with('/') ? "" : "/") + last_part(source.url);
  return sources;
}

// The contents of the files of a download, in their order. Throws DataError: damaged, or another checksum than expected.
std::vector<std::string> contents_of(const Source& source) {
  std::vector<std::string> members;
  for (const DataFile& file : source.files) members.push_back(file.member);
  const bool is_archive = !members.front().empty();
  std::vector<std::string> contents;
  if (is_archive)
    contents = read_members(source.part, members);
  else
    contents.push_back(read_data_file(source.part));
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const DataFile& file = source.files[i];
    const std::string found = file.sha256.empty() ? "" : sha256_of_text(contents[i]);
    if (found != file.sha256) throw DataError(source.url + ": " + file.path + " has the checksum " + found + ", expected " + file.sha256);
  }
  return contents;
}

// Downloads and checks; where an earlier attempt was continued, it may have been of another version, so it is tried once more from the
// start.
std::vector<std::string> get(const Source& source, const FetchListener& listener) {
  for (;;) {
    const Continuation continuation = download(source.url, source.part, listener.progress);
    try {
      return contents_of(source);
    } catch (const DataError& error) {
      if (continuation == Continuation::resumed) {
        fs::remove(source.part);
        continue;
      }
      const fs::path rejected = fs::path(source.part).replace_extension(".rejected");
      fs::rename(source.part, rejected);
      throw DataError(std::string(error.what()) + "; what was downloaded is kept as " + rejected.string());
    }
  }
}

void fetch_source(const Source& source, const FetchOptions& options, const FetchListener& listener) {
  listener.begin(source.url);
  const std::vector<std::string> contents = get(source, listener);
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    write_whole(options.folder / source.files[i].path, contents[i]);
    listener.end(options.folder / source.files[i].path, false);
  }
  fs::remove(source.part);
}

}  // namespace

void fetch_data(const DataInfo& info, const FetchOptions& options, const FetchListener& listener) {
  for (const DataFile& file : info.files)
    if (file.url.empty())
      throw ConfigError("the data set \"" + info.name + "\" has no publisher to fetch " + file.path + " from: " + info.publisher);
  for (const Source& source : sources_of(missing_files(info, options.folder, listener), options)) {
    std::error_code error;
    fs::create_directories(source.part.parent_path(), error);
    if (error) throw ConfigError(source.part.parent_path().string() + ": cannot be made: " + error.message());
    fetch_source(source, options, listener);
  }
}

}  // namespace fl
