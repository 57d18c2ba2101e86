// Text from files, keys, names and plug-ins as a terminal may show it: whatever it would act upon, and whatever changes the order in which
// other text is read, is shown as a code.
//
//   control characters U+0000 .. U+001F but line feed and tab, U+007F      \x1b
//   bytes that are no UTF-8                                                \xff
//   controls U+0080 .. U+009F, line and paragraph separators, marks and    \u{202e}
//   overrides of direction (U+061C, U+200E, U+200F, U+202A .. U+202E, U+2066 .. U+2069)
//
// PrintableBuffer does that to a stream, so that it happens where text leaves the program and nowhere else; sequences of our own for the
// terminal go through write_sequence().
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
  // Writes to `inner`, which outlives this.
  explicit PrintableBuffer(std::streambuf& inner) : inner_(inner) {}
  // Shows what is left of a character that was never completed.
  ~PrintableBuffer() override;

  // Writes these bytes as they are.
  void write_as_is(std::string_view bytes);

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  bool put(std::string_view text);

  std::streambuf& inner_;
  std::string begun_;  // bytes of a character whose others are still to come
};

// Writes a sequence that moves the cursor or erases, unchanged whether the stream is printable or not.
FL_API void write_sequence(std::ostream& out, std::string_view sequence);

// Makes std::cout and std::cerr printable for the rest of the process. To be called once, before anything is written.
FL_API void make_output_printable();

}  // namespace fl
