#include "scenarios/data/gunzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"

namespace fl {

namespace {
constexpr std::size_t kPiece = std::size_t{1} << 17;  // bytes, packed and unpacked
}  // namespace

bool is_gzip(std::span<const std::byte> begin) { return begin.size() >= 2 && begin[0] == std::byte{0x1f} && begin[1] == std::byte{0x8b}; }

// zlib's inflate with its memory released whatever happens.
struct Gunzip::State {
  State(PackedBytes bytes, std::string stream_name) : source(std::move(bytes)), name(std::move(stream_name)) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~State() { inflateEnd(&stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] std::uint64_t consumed() const { return taken - stream.avail_in; }
  [[noreturn]] void fail(const std::string& why) const { throw DataError(name + ": the gzip stream " + why); }

  void take_piece() {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, source.size - taken));
    if (count == 0) fail("ends early, after " + std::to_string(source.size) + " bytes (a truncated download?)");
    packed.resize(count);
    source.read(taken, packed);
    taken += count;
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(count);
  }
  // Goes on with the next member, or is over.
  void end_member() {
    const std::uint64_t left = source.size - consumed();
    is_over = left == 0;
    if (is_over) return;
    std::array<std::byte, 2> begin{};
    if (left >= begin.size()) source.read(consumed(), begin);
    if (!is_gzip(begin))
      throw DataError(name + ": " + std::to_string(left) + " bytes follow the end of the gzip stream at its byte " +
                      std::to_string(consumed()));
    inflateReset(&stream);
  }

  PackedBytes source;
  std::string name;
  std::vector<std::byte> packed;
  std::vector<char> unpacked = std::vector<char>(kPiece);
  std::uint64_t taken = 0;  // bytes of the source, those that wait in the stream included
  z_stream stream{};
  bool is_over = false;
};

Gunzip::Gunzip(PackedBytes packed, std::string name) : state_(std::make_unique<State>(std::move(packed), std::move(name))) {}
Gunzip::~Gunzip() = default;
Gunzip::Gunzip(Gunzip&&) noexcept = default;
bool Gunzip::is_over() const { return state_->is_over; }

void Gunzip::fill(std::string& out, std::size_t enough) {
  State& s = *state_;
  while (!s.is_over && out.size() < enough) {
    check_for_stop();
    if (s.stream.avail_in == 0) s.take_piece();
    const std::size_t room = std::min(kPiece, enough - out.size());
    s.stream.next_out = reinterpret_cast<Bytef*>(s.unpacked.data());
    s.stream.avail_out = static_cast<uInt>(room);
    const int status = inflate(&s.stream, Z_NO_FLUSH);
    out.append(s.unpacked.data(), room - s.stream.avail_out);
    if (status == Z_STREAM_END)
      s.end_member();
    else if (status != Z_OK && status != Z_BUF_ERROR)  // the latter asks for more packed bytes
      s.fail("is damaged at its byte " + std::to_string(s.consumed()) + ": " + (s.stream.msg ? s.stream.msg : zError(status)));
  }
}

}  // namespace fl
