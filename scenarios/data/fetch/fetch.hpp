// Gets a known data set from its publisher into a data folder.
//
// Each file is downloaded under its name with .part appended, going on where an earlier attempt ended. What was downloaded is compared with
// its checksum before anything is unpacked from it; what comes out is compared again, written under another name and only then renamed, so
// that a file under its own name is whole. A download with another checksum is kept beside it as .rejected. What has no checksum is not
// fetched, and no more is downloaded or unpacked than the published files have.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "scenarios/data/catalog.hpp"
#include "scenarios/data/fetch/download.hpp"

namespace fl {

struct FetchOptions {
  std::filesystem::path folder = {};  // the data folder; made if it does not exist
  std::string from = {};              // "" = the publisher, else an address below which the publisher's file names are found
};

// Callbacks for the progress of the downloads.
struct FetchListener {
  std::function<void(const std::string& url)> begin = [](const std::string&) {};
  DownloadProgress progress = [](std::uint64_t, std::uint64_t) {};
  std::function<void(const std::filesystem::path& file, bool was_there)> end = [](const std::filesystem::path&, bool) {};
};

// Throws ConfigError: nobody publishes the set as files, a file under one of its names has other contents, the folder cannot be made;
// DataError: another checksum than expected; Error: the connection or the disk fails.
FL_API void fetch_data(const DataInfo& info, const FetchOptions& options, const FetchListener& listener = {});

}  // namespace fl
