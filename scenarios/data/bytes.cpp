#include "scenarios/data/bytes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

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

DataReader::DataReader(const std::filesystem::path& file) : file_(file) {
  std::error_code status;
  if (std::filesystem::is_directory(file, status)) throw DataError(file.string() + ": is a folder, not a data file");
  // O_NONBLOCK: a pipe is refused, not waited for.
  descriptor_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw DataError(file.string() + ": cannot be opened: " + std::strerror(errno));
  try {
    struct stat facts {};
    if (::fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode))
      throw DataError(file.string() + ": its size is unknown; data files must be ordinary files");
    size_ = static_cast<std::size_t>(facts.st_size);
    std::array<std::byte, 2> begin{};
    if (size_ >= begin.size()) read(0, begin);
    if (!is_gzip(begin)) return;
    std::string packed(size_, '\0');
    read(0, std::as_writable_bytes(std::span<char>(packed)));
    unpacked_ = unpack_data(std::as_bytes(std::span<const char>(packed)), file.string());
    size_ = unpacked_.size();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
  ::close(descriptor_);
  descriptor_ = -1;
}

DataReader::~DataReader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void DataReader::read(std::size_t begin, std::span<std::byte> out) const {
  if (descriptor_ < 0) {
    std::memcpy(out.data(), unpacked_.data() + begin, out.size());
    return;
  }
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t count = ::pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(begin + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      throw DataError(file_.string() + ": only " + std::to_string(done) + " of " + std::to_string(out.size()) + " bytes from byte " +
                      std::to_string(begin) + " on could be read" + (count < 0 ? std::string(": ") + std::strerror(errno) : ""));
    done += static_cast<std::size_t>(count);
  }
}

std::string DataReader::take() && {
  if (descriptor_ < 0) return std::move(unpacked_);
  std::string bytes(size_, '\0');
  read(0, std::as_writable_bytes(std::span<char>(bytes)));
  return bytes;
}

std::string read_data_file(const std::filesystem::path& file) {
  DataReader reader(file);
  if (reader.size() == 0) throw DataError(file.string() + ": the file is empty");
  return std::move(reader).take();
}

std::size_t rows_kept(std::size_t asked, std::size_t available, const std::filesystem::path& file) {
  if (asked > available)
    throw DataError(file.string() + ": rows = " + std::to_string(asked) + " were asked for, the file has " + std::to_string(available));
  return asked > 0 ? asked : available;
}

}  // namespace fl
