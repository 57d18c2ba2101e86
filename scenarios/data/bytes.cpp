#include "scenarios/data/bytes.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "fl_core/error.hpp"

namespace fl {
namespace {

bool is_gzip(std::span<const std::byte> bytes) { return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b}; }

// zlib's inflate with its memory released whatever happens.
class Inflater {
 public:
  Inflater() {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Unpacks one member from the front of `bytes`, appends it to `out` and returns what follows it.
  std::span<const std::byte> member(std::span<const std::byte> bytes, std::string& out, const std::string& name) {
    inflateReset(&stream_);
    for (;;) {
      constexpr std::size_t kStep = std::size_t{1} << 20;  // bytes
      const std::size_t filled = out.size();
      out.resize(filled + kStep);
      const auto offered = static_cast<uInt>(std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
      stream_.avail_in = offered;
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
      stream_.avail_out = kStep;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      out.resize(filled + kStep - stream_.avail_out);
      bytes = bytes.subspan(offered - stream_.avail_in);
      if (status == Z_STREAM_END) return bytes;
      if (status == Z_BUF_ERROR || (status == Z_OK && bytes.empty() && stream_.avail_out > 0))
        throw DataError(name + ": the gzip stream ends early (a truncated download?)");
      if (status != Z_OK) throw DataError(name + ": the gzip stream is damaged: " + (stream_.msg ? stream_.msg : zError(status)));
    }
  }

 private:
  z_stream stream_{};
};

}  // namespace

std::string unpack_data(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.empty()) throw DataError(name + ": the file is empty");
  std::string out;
  if (!is_gzip(bytes)) {
    out.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return out;
  }
  Inflater inflater;
  while (is_gzip(bytes)) bytes = inflater.member(bytes, out, name);
  if (!bytes.empty()) throw DataError(name + ": " + std::to_string(bytes.size()) + " bytes follow the end of the gzip stream");
  return out;
}

std::string read_data_file(const std::filesystem::path& file) {
  std::error_code status;
  if (std::filesystem::is_directory(file, status)) throw DataError(file.string() + ": is a folder, not a data file");
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) throw DataError(file.string() + ": cannot be opened: " + std::strerror(errno));
  const std::streamoff size = in.tellg();
  if (size < 0) throw DataError(file.string() + ": its size is unknown; data files must be ordinary files");
  std::string bytes(static_cast<std::size_t>(size), '\0');
  in.seekg(0);
  in.read(bytes.data(), size);
  if (in.gcount() != size)
    throw DataError(file.string() + ": only " + std::to_string(in.gcount()) + " of " + std::to_string(size) + " bytes could be read");
  const auto view = std::as_bytes(std::span<const char>(bytes));
  return is_gzip(view) || bytes.empty() ? unpack_data(view, file.string()) : bytes;
}

}  // namespace fl
