#include "fl_core/config/printable.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>

namespace fl {
namespace {

// The first character of a text: its code and its bytes, or what is wrong.
struct Character {
  enum class Kind { whole, begun, broken };
  Kind kind = Kind::whole;
  std::uint32_t code = 0;
  std::size_t size = 1;
};

Character first_character(std::string_view text) {
  using Kind = Character::Kind;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {Kind::whole, lead, 1};
  if (lead < 0xc2 || lead > 0xf4) return {Kind::broken, lead, 1};
  const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte's range keeps out longer forms of shorter codes, surrogates, and what lies behind U+10FFFF.
  const unsigned least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80, most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  std::uint32_t code = lead & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {Kind::begun, code, i};
    const unsigned next = byte(i);
    if (next < (i == 1 ? least : 0x80) || next > (i == 1 ? most : 0xbf)) return {Kind::broken, lead, 1};
    code = code << 6 | (next & 0x3f);
  }
  return {Kind::whole, code, size};
}

bool is_hidden(std::uint32_t code) {
  if (code == '\n' || code == '\t') return false;
  const auto within = [code](std::uint32_t from, std::uint32_t to) { return code >= from && code <= to; };
  return code < 0x20 || within(0x7f, 0x9f) || code == 0x061c || within(0x200e, 0x200f) || within(0x2028, 0x202e) || within(0x2066, 0x2069);
}

std::string byte_text(char byte) {
  char text[8];
  std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return text;
}

std::string code_text(std::uint32_t code) {
  char text[16];
  std::snprintf(text, sizeof text, code < 0x80 ? "\\x%02x" : "\\u{%x}", static_cast<unsigned>(code));
  return text;
}

// Appends the text as it is shown; returns how many bytes at its end are a character that has begun.
std::size_t append_printable(std::string_view text, std::string& shown) {
  while (!text.empty()) {
    const auto plain = std::find_if(text.begin(), text.end(), [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte >= 0x7f || (byte < 0x20 && c != '\n' && c != '\t');
    });
    const auto ascii = static_cast<std::size_t>(plain - text.begin());
    shown += text.substr(0, ascii);
    text.remove_prefix(ascii);
    if (text.empty()) break;
    const Character c = first_character(text);
    if (c.kind == Character::Kind::begun) return text.size();
    if (c.kind == Character::Kind::broken)
      shown += byte_text(text[0]);
    else if (is_hidden(c.code))
      shown += code_text(c.code);
    else
      shown += text.substr(0, c.size);
    text.remove_prefix(c.size);
  }
  return 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  const std::size_t begun = append_printable(text, shown);
  for (const char byte : text.substr(text.size() - begun)) shown += byte_text(byte);
  return shown;
}

PrintableBuffer::~PrintableBuffer() {
  for (const char byte : begun_) put(byte_text(byte));
}

bool PrintableBuffer::put(std::string_view text) {
  const auto size = static_cast<std::streamsize>(text.size());
  return inner_.sputn(text.data(), size) == size;
}

void PrintableBuffer::write_as_is(std::string_view bytes) { put(bytes); }

std::streamsize PrintableBuffer::xsputn(const char* text, std::streamsize size) {
  std::string whole = std::move(begun_), shown;
  whole.append(text, static_cast<std::size_t>(size));
  const std::size_t left = append_printable(whole, shown);
  begun_ = whole.substr(whole.size() - left);
  return put(shown) ? size : 0;
}

PrintableBuffer::int_type PrintableBuffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char byte = traits_type::to_char_type(c);
  return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
}

int PrintableBuffer::sync() { return inner_.pubsync(); }

void write_sequence(std::ostream& out, std::string_view sequence) {
  if (auto* const buffer = dynamic_cast<PrintableBuffer*>(out.rdbuf()))
    buffer->write_as_is(sequence);
  else
    out << sequence;
}

void make_output_printable() {
  for (std::ostream* out : {&std::cout, &std::cerr}) out->rdbuf(new PrintableBuffer(*out->rdbuf()));  // they outlive main()
}

}  // namespace fl
