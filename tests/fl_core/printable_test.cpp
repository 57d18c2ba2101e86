#include "fl_core/config/printable.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace fl {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text : {"", "plain", "two\nlines\tand a tab", "ζ² ≤ 1/√δ · 中文 · 😀"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, ShowsWhatATerminalWouldActUpon) {
  EXPECT_EQ(printable("\x1b[2J\x1b]0;owned\x07"), "\\x1b[2J\\x1b]0;owned\\x07");
  EXPECT_EQ(printable(std::string_view("\0\r\x7f", 3)), "\\x00\\x0d\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\u{9b}2J")
      << "the control sequence introducer as one character";
  EXPECT_EQ(printable("\u202euser\u2069\u200f\u2028"), "\\u{202e}user\\u{2069}\\u{200f}\\u{2028}");
}

TEST(Printable, ShowsBytesThatAreNoText) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("a\x9b"), "a\\x9b");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b") << "longer than it needs to be";
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a surrogate pair";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("cut \xe2\x82"), "cut \\xe2\\x82");
  EXPECT_EQ(printable("\xe2\x1b[m"), "\\xe2\\x1b[m");
}

// However the bytes are cut, a stream shows what printable() shows.
TEST(PrintableBuffer, ShowsTheSameInPieces) {
  const std::string text = "a\x1b[m ζ² \xff \u202e end \xe2\x82\xac\xe2\x82";
  for (std::size_t size = 1; size < text.size(); ++size) {
    std::ostringstream out;
    {
      PrintableBuffer buffer(*out.rdbuf());
      std::ostream shown(&buffer);
      for (std::size_t at = 0; at < text.size(); at += size) shown << text.substr(at, size) << std::flush;
    }
    EXPECT_EQ(out.str(), printable(text)) << "pieces of " << size;
  }
}

TEST(PrintableBuffer, OurOwnSequencesPass) {
  std::ostringstream out;
  PrintableBuffer buffer(*out.rdbuf());
  std::ostream shown(&buffer);
  write_sequence(shown, "\r\x1b[K");
  shown << "\x1b[K";
  EXPECT_EQ(out.str(), "\r\x1b[K\\x1b[K");
  std::ostringstream plain;
  write_sequence(plain, "\x1b[A");
  EXPECT_EQ(plain.str(), "\x1b[A");
}

}  // namespace
}  // namespace fl
