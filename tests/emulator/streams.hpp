// Streams of the emulated GPU. Usually work is done when it is given. A late stream does it at some later time, as a GPU may: streams take
// turns at random, and a stream that is waited for comes to its end. Work that needs what another stream or the host has not done yet, or
// reads memory of the host that is gone by then, gives wrong results there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace fl::emulator {

// Lets all streams be late, in the order that the seed draws; null: work is done when it is given. At first the environment variable
// FEDBITS_CUDA_DELAY says it. Waits for all streams.
void set_late(std::optional<std::uint64_t> seed);

struct Stream;
[[nodiscard]] void* create_stream();
// Does the remaining work of the stream first.
void destroy_stream(void* stream);

// Gives work to a stream (null: the default one), or to the recording of this thread.
void submit(void* stream, std::function<void()> work);
void finish(void* stream);
void finish_all();

// A place in the work of a stream.
struct Place {
  std::shared_ptr<Stream> stream;
  std::uint64_t position = 0;
};
[[nodiscard]] Place place_of(void* stream);
// Late streams may go on a little before the answer.
[[nodiscard]] bool has_come_to(const Place& place);
void come_to(const Place& place);

}  // namespace fl::emulator
