// Downloads one file by HTTPS, or copies it from another folder (file://), going on where an earlier attempt ended.
//
// Plain HTTP is used with this machine's own loopback address (127.0.0.1, [::1]) and with no other. Redirects are followed by HTTPS
// alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fl_core/config/device.hpp"
#include "scenarios/data/fetch/part_file.hpp"

namespace fl {

// Called now and then with the bytes that are there and the bytes of the whole (0 = not known).
using DownloadProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

enum class Continuation { resumed, from_the_start };

// Returns true if fedbits was built with libcurl.
[[nodiscard]] FL_API bool can_download();

// Appends to `part` what it lacks of `url`; from the start where the server cannot send a part, or `part` has more than `most_bytes`.
// Returns whether bytes of an earlier attempt were kept. Throws ConfigError when fedbits was built without libcurl or for an address of
// another protocol; DataError for more than `most_bytes`, announced or sent; Error for a connection or a disk that fails: what has arrived
// stays in `part`.
FL_API Continuation download(const std::string& url, PartFile& part, std::uint64_t most_bytes, const DownloadProgress& progress);

}  // namespace fl
