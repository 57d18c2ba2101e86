// Downloads one file by HTTP, HTTPS or from another folder (file://), going on where an earlier attempt ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "fl_core/device.hpp"

namespace fl {

// Called now and then with the bytes that are there and the bytes of the whole (0 = not known).
using DownloadProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

enum class Continuation { resumed, from_the_start };

// Appends to `part` what it lacks of `url`; from the start where the server cannot send a part. Returns whether bytes of an earlier attempt
// were kept. Throws ConfigError when fedbits was built without libcurl or another process is at work on the same file, Error for a
// connection or a disk that fails: what has arrived stays in `part`.
FL_API Continuation download(const std::string& url, const std::filesystem::path& part, const DownloadProgress& progress);

}  // namespace fl
