// Makes text from files, keys, names and plug-ins safe for a terminal: characters that a terminal interprets, and characters that change
// the reading order of other text, are shown as codes.
//
//   control characters U+0000 .. U+001F except line feed and tab, U+007F   \x1b
//   bytes that are not UTF-8                                               \xff
//   controls U+0080 .. U+009F, line and paragraph separators, marks and    \u{202e}
//   overrides of direction (U+061C, U+200E, U+200F, U+202A .. U+202E, U+2066 .. U+2069)
//
// PrintableBuffer applies this to a stream, so that it happens only where text leaves the program. Terminal sequences of fedbits itself
// are written with write_sequence().
#pragma once

#include <iosfwd>
#include <streambuf>
#include <string>
#include <string_view>

#include "fl_core/config/device.hpp"

namespace fl {

[[nodiscard]] FL_API std::string printable(std::string_view text);

class FL_API PrintableBuffer final : public std::streambuf {
 public:
  // Writes to `inner`, which must outlive this object.
  explicit PrintableBuffer(std::streambuf& inner) : inner_(inner) {}
  // Writes the codes of an incomplete character.
  ~PrintableBuffer() override;

  // Writes these bytes unchanged.
  void write_as_is(std::string_view bytes);

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  bool put(std::string_view text);

  std::streambuf& inner_;
  std::string begun_;  // bytes of an incomplete character
};

// Writes a sequence that moves the cursor or erases. The sequence stays unchanged on printable streams too.
FL_API void write_sequence(std::ostream& out, std::string_view sequence);

// Makes std::cout and std::cerr printable for the rest of the process. Call it once, before anything is written.
FL_API void make_output_printable();

}  // namespace fl
