// The fonts of a PDF: the glyphs that a chart uses, as TrueType fonts of their own.
//
// The glyphs come from PDF_FONTS (cmake/font_glyphs.cpp): by character, its width and its record of the table `glyf`. The font has the
// tables that ISO 32000-1, 9.9, asks of an embedded TrueType font whose glyphs are named by their numbers.
"use strict";

const word = (value) => String.fromCharCode(value >> 8 & 255, value & 255);
const longWord = (value) => word(value >>> 16) + word(value & 65535);
const padded = (bytes) => bytes + "\0".repeat((4 - bytes.length % 4) % 4);
const sumOf = (bytes) => {
  let sum = 0;
  for (let i = 0; i < bytes.length; i += 4) sum = sum + (bytes.charCodeAt(i) << 24 | bytes.charCodeAt(i + 1) << 16 | bytes.charCodeAt(i + 2) << 8 | bytes.charCodeAt(i + 3)) >>> 0;
  return sum;
};

class PdfFont {
  // Font, file, description, characters, and the font of numbered glyphs.
  static OBJECTS = 5;

  constructor(name, kind) {
    Object.assign(this, {name, kind, source: PDF_FONTS[kind], characters: [], numbers: new Map()});
  }

  isUsed() { return this.characters.length > 0; }

  // Returns the numbers of the glyphs of a text as hexadecimal digits, and its width in units of the font's size. A character without a glyph
  // becomes a question mark.
  take(text) {
    let codes = "", width = 0;
    for (const one of text) {
      const character = this.source.glyphs[one.codePointAt(0)] ? one : "?";
      if (!this.numbers.has(character)) {
        this.characters.push(character);
        this.numbers.set(character, this.characters.length);  // glyph 0 stands for none
      }
      codes += this.numbers.get(character).toString(16).padStart(4, "0");
      width += this.source.glyphs[character.codePointAt(0)][0] / this.source.units;
    }
    return {codes, width};
  }

  // The bytes of the font, and the box around its glyphs.
  file() {
    const glyphs = [[this.source.units >> 1, ""], ...this.characters.map((character) => this.source.glyphs[character.codePointAt(0)])];
    const records = glyphs.map(([, record]) => padded(atob(record)));
    const number = (record, at) => { const value = record.charCodeAt(at) << 8 | record.charCodeAt(at + 1); return value > 32767 ? value - 65536 : value; };
    const drawn = records.filter((record) => record.length > 0), edge = (at, choose) => drawn.length ? choose(...drawn.map((record) => number(record, at))) : 0;
    const box = [edge(2, Math.min), edge(4, Math.min), edge(6, Math.max), edge(8, Math.max)];
    const points = Math.max(1, ...drawn.map((record) => number(record, 8 + 2 * number(record, 0)) + 1)), contours = Math.max(1, ...drawn.map((record) => number(record, 0)));
    const {units, ascent, descent} = this.source, widths = glyphs.map(([width]) => width);
    let place = 0;
    const places = [0, ...records.map((record) => place += record.length)];
    const tables = {
      glyf: records.join(""),
      head: longWord(0x10000) + longWord(0x10000) + longWord(0) + longWord(0x5f0f3cf5) + word(0) + word(units) + longWord(0).repeat(4) + box.map(word).join("") + word(0) + word(8) + word(2) + word(1) + word(0),
      hhea: longWord(0x10000) + word(ascent) + word(descent) + word(0) + word(Math.max(...widths)) + word(0).repeat(3) + word(1) + word(0).repeat(6) + word(0) + word(glyphs.length),
      hmtx: glyphs.map(([width], i) => word(width) + word(records[i] ? number(records[i], 2) : 0)).join(""),
      loca: places.map(longWord).join(""),
      maxp: longWord(0x10000) + word(glyphs.length) + word(points) + word(contours) + word(0).repeat(2) + word(1) + word(0).repeat(8),
    };
    const names = Object.keys(tables), reach = 2 ** Math.floor(Math.log2(names.length));
    let at = 12 + 16 * names.length, body = "";
    let head = longWord(0x10000) + word(names.length) + word(16 * reach) + word(Math.log2(reach)) + word(16 * (names.length - reach));
    for (const name of names) {
      const bytes = padded(tables[name]);
      head += name + longWord(sumOf(bytes)) + longWord(at) + longWord(tables[name].length);
      body += bytes;
      at += bytes.length;
    }
    const bytes = head + body, adjustment = 0xb1b0afba - sumOf(bytes) >>> 0;
    const headAt = bytes.indexOf(tables.head, head.length) + 8;
    return {bytes: bytes.slice(0, headAt) + longWord(adjustment) + bytes.slice(headAt + 4), box};
  }

  // The objects of the font in a PDF, of which the first one is called by texts.
  objects(first) {
    const {bytes, box} = this.file(), {units, ascent, descent} = this.source;
    const scaled = (value) => Math.round(1000 * value / units), called = `FEDBIT+DejaVuSans${this.kind === "bold" ? "-Bold" : ""}`;
    const utf16 = (character) => [...Array(character.length).keys()].map((i) => character.charCodeAt(i).toString(16).padStart(4, "0")).join("");
    const pairs = this.characters.map((character, i) => `<${(i + 1).toString(16).padStart(4, "0")}> <${utf16(character)}>`);
    const lists = Array.from({length: Math.ceil(pairs.length / 100)}, (_, i) => pairs.slice(100 * i, 100 * i + 100));
    const toUnicode = "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Adobe-Identity-UCS def /CMapType 2 def\n1 begincodespacerange <0000> <ffff> endcodespacerange\n"
      + lists.map((list) => `${list.length} beginbfchar\n${list.join("\n")}\nendbfchar\n`).join("") + "endcmap CMapName currentdict /CMap defineresource pop end end";
    const widths = this.characters.map((character) => scaled(this.source.glyphs[character.codePointAt(0)][0])).join(" ");
    return [
      `<< /Type /Font /Subtype /Type0 /BaseFont /${called} /Encoding /Identity-H /DescendantFonts [${first + 4} 0 R] /ToUnicode ${first + 3} 0 R >>`,
      pdfStream(bytes, `/Length1 ${bytes.length} `),
      `<< /Type /FontDescriptor /FontName /${called} /Flags 4 /FontBBox [${box.map(scaled).join(" ")}] /ItalicAngle 0 /Ascent ${scaled(ascent)} /Descent ${scaled(descent)} `
        + `/CapHeight ${scaled(0.73 * units)} /StemV ${this.kind === "bold" ? 140 : 80} /FontFile2 ${first + 1} 0 R >>`,
      pdfStream(toUnicode),
      `<< /Type /Font /Subtype /CIDFontType2 /BaseFont /${called} /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor ${first + 2} 0 R `
        + `/DW 600 /W [1 [${widths}]] /CIDToGIDMap /Identity >>`,
    ];
  }
}
