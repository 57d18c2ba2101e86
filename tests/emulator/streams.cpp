#include "tests/emulator/streams.hpp"

#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/emulator/block.hpp"

namespace fl::emulator {

struct Stream {
  std::deque<std::function<void()>> work;
  std::uint64_t given = 0, done = 0;
};

namespace {

constexpr std::uint64_t kMostWaiting = 256;  // pieces of work, in all streams

// The streams of the process. Late work is done by the thread that waits for it or that gives some, one piece at a time.
class Streams {
 public:
  static Streams& instance() {
    static auto* streams = new Streams;  // outlives late frees
    return *streams;
  }

  void* create() {
    const std::lock_guard lock(mutex_);
    auto stream = std::make_shared<Stream>();
    void* key = stream.get();
    streams_[key] = std::move(stream);
    return key;
  }
  void destroy(void* key) {
    const std::lock_guard lock(mutex_);
    finish(key);
    if (key != nullptr) streams_.erase(key);
  }
  void set_late(std::optional<std::uint64_t> seed) {
    const std::lock_guard lock(mutex_);
    finish_all();
    seed_ = seed;
    drawn_ = 0;
  }

  void submit(void* key, std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      if (seed_) {
        Stream& stream = *streams_.at(key);
        stream.work.push_back(std::move(work));
        ++stream.given;
        ++waiting_;
        while (waiting_ > kMostWaiting || (waiting_ > 0 && draw(3) == 0)) step();
        return;
      }
    }
    work();
  }
  void finish(void* key) {
    const std::lock_guard lock(mutex_);
    Stream& stream = *streams_.at(key);
    come_to(stream, stream.given);
  }
  void finish_all() {
    const std::lock_guard lock(mutex_);
    while (waiting_ > 0) step();
  }

  [[nodiscard]] Place place_of(void* key) {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Stream>& stream = streams_.at(key);
    return {stream, stream->given};
  }
  [[nodiscard]] bool has_come_to(const Place& place) {
    const std::lock_guard lock(mutex_);
    if (waiting_ > 0 && draw(2) == 0) step();
    return place.stream == nullptr || place.stream->done >= place.position;
  }
  void come_to(const Place& place) {
    const std::lock_guard lock(mutex_);
    if (place.stream != nullptr) come_to(*place.stream, place.position);
  }

 private:
  Streams() {
    if (const char* seed = std::getenv("FEDBITS_CUDA_DELAY"); seed != nullptr && *seed != '\0') seed_ = std::strtoull(seed, nullptr, 10);
    streams_[nullptr] = std::make_shared<Stream>();
  }

  // Others may do something first.
  void come_to(Stream& stream, std::uint64_t position) {
    while (waiting_ > 0 && draw(3) == 0) step();
    while (stream.done < position) do_next(stream);
  }
  void step() {
    std::vector<Stream*> some;
    for (const auto& [key, stream] : streams_)
      if (!stream->work.empty()) some.push_back(stream.get());
    if (some.empty()) return;
    do_next(*some[draw(some.size())]);
  }
  void do_next(Stream& stream) {
    const std::function<void()> work = std::move(stream.work.front());
    stream.work.pop_front();
    ++stream.done;
    --waiting_;
    work();
  }

  // A number below n (SplitMix64).
  [[nodiscard]] std::size_t draw(std::size_t n) {
    std::uint64_t z = *seed_ + ++drawn_ * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return static_cast<std::size_t>((z ^ z >> 31) % n);
  }

  std::recursive_mutex mutex_;
  std::optional<std::uint64_t> seed_;
  std::uint64_t drawn_ = 0, waiting_ = 0;
  std::map<void*, std::shared_ptr<Stream>> streams_;
};

}  // namespace

void set_late(std::optional<std::uint64_t> seed) { Streams::instance().set_late(seed); }
void* create_stream() { return Streams::instance().create(); }
void destroy_stream(void* stream) { Streams::instance().destroy(stream); }

void submit(void* stream, std::function<void()> work) {
  if (recording() != nullptr)
    recording()->push_back(std::move(work));
  else
    Streams::instance().submit(stream, std::move(work));
}
void finish(void* stream) { Streams::instance().finish(stream); }
void finish_all() { Streams::instance().finish_all(); }

Place place_of(void* stream) { return Streams::instance().place_of(stream); }
bool has_come_to(const Place& place) { return Streams::instance().has_come_to(place); }
void come_to(const Place& place) { Streams::instance().come_to(place); }

}  // namespace fl::emulator
