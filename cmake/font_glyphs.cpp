// Writes the glyphs of fonts as a script of the report's page, which embeds them in the PDF of a chart.
//
//   font_glyphs OUT.js NAME FONT.ttf [NAME FONT.ttf ...]
//
// Takes the characters that charts use out of a TrueType font: their outlines without hinting, as records of the table `glyf` in base64,
// and their widths. Composite glyphs (letters with accents) become simple ones. The format is Apple's "TrueType Reference Manual",
// chapter 6.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using Bytes = std::vector<std::uint8_t>;

struct Point {
  int x = 0, y = 0;
  bool is_on_curve = true, ends_contour = false;
};
using Outline = std::vector<Point>;

// The characters: ASCII, Latin-1, and what charts write beside them.
std::vector<std::uint32_t> characters() {
  std::vector<std::uint32_t> all;
  for (std::uint32_t c = 0x20; c <= 0x7e; ++c) all.push_back(c);
  for (std::uint32_t c = 0xa1; c <= 0xff; ++c) all.push_back(c);
  for (std::uint32_t c = 0x3b1; c <= 0x3c9; ++c) all.push_back(c);  // alpha to omega
  for (const std::uint32_t c :
       {0x393,  0x394,  0x398,  0x39b,  0x3a3,  0x3a6,  0x3a9,  0x2013, 0x2014, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2026, 0x20ac,
        0x2080, 0x2081, 0x2082, 0x1d62, 0x2207, 0x2211, 0x221a, 0x221e, 0x2212, 0x2248, 0x2260, 0x2264, 0x2265, 0x2190, 0x2192})
    all.push_back(c);
  return all;
}

class Font {
 public:
  explicit Font(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
    for (std::size_t t = 0, count = u16(4); t < count; ++t) {
      const std::size_t at = 12 + 16 * t;
      tables_[{bytes_.begin() + static_cast<std::ptrdiff_t>(at), bytes_.begin() + static_cast<std::ptrdiff_t>(at + 4)}] = u32(at + 8);
    }
    find_characters();
  }
  [[nodiscard]] int units_per_em() const { return u16(table("head") + 18); }
  [[nodiscard]] int ascent() const { return i16(table("hhea") + 4); }
  [[nodiscard]] int descent() const { return i16(table("hhea") + 6); }
  [[nodiscard]] bool has(std::uint32_t character) const { return glyph_of_.contains(character); }
  [[nodiscard]] int width(std::uint32_t character) const {
    const std::size_t most = u16(table("hhea") + 34), glyph = glyph_of_.at(character);
    return u16(table("hmtx") + 4 * (glyph < most ? glyph : most - 1));
  }
  [[nodiscard]] Outline outline(std::uint32_t character) const { return outline_of(glyph_of_.at(character), 0); }

 private:
  [[nodiscard]] std::uint8_t u8(std::size_t at) const { return bytes_.at(at); }
  [[nodiscard]] std::uint16_t u16(std::size_t at) const { return static_cast<std::uint16_t>(u8(at) << 8 | u8(at + 1)); }
  [[nodiscard]] std::int16_t i16(std::size_t at) const { return static_cast<std::int16_t>(u16(at)); }
  [[nodiscard]] std::uint32_t u32(std::size_t at) const { return static_cast<std::uint32_t>(u16(at)) << 16 | u16(at + 2); }
  [[nodiscard]] std::size_t table(const std::string& name) const { return tables_.at(name); }

  // Reads the map of characters to glyphs in format 4: segments of consecutive characters.
  void find_characters() {
    const std::size_t cmap = table("cmap");
    for (std::size_t t = 0, count = u16(cmap + 2); t < count; ++t) {
      const std::size_t map = cmap + u32(cmap + 4 + 8 * t + 4);
      if (u16(map) != 4) continue;
      const std::size_t segments = u16(map + 6) / 2;
      const std::size_t ends = map + 14, starts = ends + 2 * segments + 2, deltas = starts + 2 * segments, offsets = deltas + 2 * segments;
      for (std::size_t s = 0; s < segments; ++s)
        for (std::uint32_t c = u16(starts + 2 * s); c <= u16(ends + 2 * s) && c != 0xffff; ++c) {
          const std::size_t offset = u16(offsets + 2 * s);
          std::uint16_t glyph = static_cast<std::uint16_t>(c);
          if (offset != 0) glyph = u16(offsets + 2 * s + offset + 2 * (c - u16(starts + 2 * s)));
          if (offset == 0 || glyph != 0) glyph = static_cast<std::uint16_t>(glyph + u16(deltas + 2 * s));
          if (glyph != 0) glyph_of_[c] = glyph;
        }
      return;
    }
    throw std::runtime_error("the font has no map of format 4");
  }
  [[nodiscard]] std::size_t place_of(std::size_t glyph, std::size_t& size) const {
    const bool is_long = u16(table("head") + 50) != 0;
    const auto offset = [&](std::size_t g) {
      return is_long ? std::size_t{u32(table("loca") + 4 * g)} : 2 * std::size_t{u16(table("loca") + 2 * g)};
    };
    size = offset(glyph + 1) - offset(glyph);
    return table("glyf") + offset(glyph);
  }
  [[nodiscard]] Outline outline_of(std::size_t glyph, int depth) const {
    std::size_t size = 0;
    const std::size_t at = place_of(glyph, size);
    if (size == 0) return {};
    if (depth > 5) throw std::runtime_error("a glyph contains itself");
    return i16(at) >= 0 ? simple(at) : composite(at, depth);
  }
  [[nodiscard]] Outline simple(std::size_t at) const {
    const std::size_t contours = u16(at), ends = at + 10;
    if (contours == 0) return {};
    Outline outline(u16(ends + 2 * (contours - 1)) + std::size_t{1});
    for (std::size_t c = 0; c < contours; ++c) outline.at(u16(ends + 2 * c)).ends_contour = true;
    std::size_t next = ends + 2 * contours;
    next += 2 + u16(next);  // instructions
    std::vector<std::uint8_t> flags;
    while (flags.size() < outline.size()) {
      const std::uint8_t flag = u8(next++);
      flags.push_back(flag);
      if ((flag & 8) != 0) flags.insert(flags.end(), u8(next++), flag);
    }
    const auto read = [&](int Point::*axis, int is_short, int is_same) {
      int value = 0;
      for (std::size_t p = 0; p < outline.size(); ++p) {
        if ((flags[p] & is_short) != 0)
          value += (flags[p] & is_same) != 0 ? u8(next++) : -u8(next++);
        else if ((flags[p] & is_same) == 0) {
          value += i16(next);
          next += 2;
        }
        outline[p].*axis = value;
      }
    };
    read(&Point::x, 2, 16);
    read(&Point::y, 4, 32);
    for (std::size_t p = 0; p < outline.size(); ++p) outline[p].is_on_curve = (flags[p] & 1) != 0;
    return outline;
  }
  [[nodiscard]] Outline composite(std::size_t at, int depth) const {
    constexpr int kWords = 1, kOffsets = 2, kScale = 8, kMore = 32, kTwoScales = 64, kMatrix = 128;
    Outline all;
    std::size_t next = at + 10;
    for (int flags = kMore; (flags & kMore) != 0;) {
      flags = u16(next);
      const std::size_t glyph = u16(next + 2);
      next += 4;
      if ((flags & kOffsets) == 0) throw std::runtime_error("a part of a glyph is placed by points");
      const int dx = (flags & kWords) != 0 ? i16(next) : static_cast<std::int8_t>(u8(next));
      const int dy = (flags & kWords) != 0 ? i16(next + 2) : static_cast<std::int8_t>(u8(next + 1));
      next += (flags & kWords) != 0 ? 4 : 2;
      double xx = 1, xy = 0, yx = 0, yy = 1;
      const auto fraction = [&] {
        next += 2;
        return i16(next - 2) / 16384.0;
      };
      if ((flags & kScale) != 0) xx = yy = fraction();
      if ((flags & kTwoScales) != 0) {
        xx = fraction();
        yy = fraction();
      }
      if ((flags & kMatrix) != 0) {
        xx = fraction();
        xy = fraction();
        yx = fraction();
        yy = fraction();
      }
      for (Point point : outline_of(glyph, depth + 1)) {
        const double x = point.x, y = point.y;
        point.x = static_cast<int>(xx * x + yx * y + (xx * x + yx * y < 0 ? -0.5 : 0.5)) + dx;
        point.y = static_cast<int>(xy * x + yy * y + (xy * x + yy * y < 0 ? -0.5 : 0.5)) + dy;
        all.push_back(point);
      }
    }
    return all;
  }

  Bytes bytes_;
  std::map<std::string, std::size_t> tables_;
  std::map<std::uint32_t, std::uint16_t> glyph_of_;
};

void put16(Bytes& out, int value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8));
  out.push_back(static_cast<std::uint8_t>(value));
}

// Returns the outline as a record of `glyf`: all coordinates as differences of two bytes, and no instructions.
Bytes record_of(const Outline& outline) {
  Bytes out;
  if (outline.empty()) return out;
  int contours = 0, low_x = outline[0].x, high_x = low_x, low_y = outline[0].y, high_y = low_y;
  for (const Point& point : outline) {
    contours += point.ends_contour ? 1 : 0;
    low_x = std::min(low_x, point.x);
    high_x = std::max(high_x, point.x);
    low_y = std::min(low_y, point.y);
    high_y = std::max(high_y, point.y);
  }
  for (const int value : {contours, low_x, low_y, high_x, high_y}) put16(out, value);
  for (std::size_t p = 0; p < outline.size(); ++p)
    if (outline[p].ends_contour) put16(out, static_cast<int>(p));
  put16(out, 0);
  for (const Point& point : outline) out.push_back(point.is_on_curve ? 1 : 0);
  int last = 0;
  for (const Point& point : outline) put16(out, point.x - std::exchange(last, point.x));
  last = 0;
  for (const Point& point : outline) put16(out, point.y - std::exchange(last, point.y));
  if (out.size() % 2 != 0) out.push_back(0);
  return out;
}

std::string base64(const Bytes& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = static_cast<std::uint32_t>(bytes[i]) << 16;
    if (i + 1 < bytes.size()) group |= static_cast<std::uint32_t>(bytes[i + 1]) << 8;
    if (i + 2 < bytes.size()) group |= bytes[i + 2];
    for (std::size_t d = 0; d < 4; ++d) text += i + d > bytes.size() ? '=' : kDigits[group >> (18 - 6 * d) & 63];
  }
  return text;
}

void write_font(std::ofstream& out, const std::string& name, const Font& font) {
  out << "\"" << name << "\":{units:" << font.units_per_em() << ",ascent:" << font.ascent() << ",descent:" << font.descent() << ",glyphs:{";
  const char* between = "";
  for (const std::uint32_t character : characters()) {
    if (!font.has(character)) continue;
    out << between << character << ":[" << font.width(character) << ",\"" << base64(record_of(font.outline(character))) << "\"]";
    between = ",";
  }
  out << "}}";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0) {
    std::fprintf(stderr, "usage: font_glyphs OUT.js [NAME FONT.ttf ...]\n");
    return 2;
  }
  try {
    std::ofstream out(argv[1]);
    out << "// Glyphs of the fonts DejaVu (public domain changes to Bitstream Vera, Copyright (c) 2003 by Bitstream, Inc. All Rights "
           "Reserved).\n"
           "\"use strict\";\nconst PDF_FONTS = {";
    for (int i = 2; i < argc; i += 2) {
      out << (i > 2 ? ",\n" : "\n");
      write_font(out, argv[i], Font(argv[i + 1]));
    }
    out << "\n};\n";
    out.close();
    return out ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "font_glyphs: %s\n", error.what());
    return 1;
  }
}
