// A chart's SVG as a PDF of one page, in vectors, with the glyphs that it uses embedded (pdf_fonts.js).
//
// What Vega writes is understood: groups and their translations and rotations, paths, lines, rectangles and texts, with fill, stroke,
// dashes and opacity. Lengths are in pixels of 1/96 inch; a point is 1/72 inch.
"use strict";

const POINTS_PER_PIXEL = 0.75;
const pdfStream = (bytes, keys = "") => `<< ${keys}/Length ${bytes.length} >>\nstream\n${bytes}\nendstream`;
const pdfNumber = (value) => String(Number(value.toFixed(3)));

function pdfColor(text) {
  const context = pdfColor.context ??= document.createElement("canvas").getContext("2d");
  context.fillStyle = "#000";
  context.fillStyle = text;
  return [1, 3, 5].map((at) => pdfNumber(parseInt(context.fillStyle.slice(at, at + 2), 16) / 255)).join(" ");
}

// The cubic curves of an elliptical arc from (x0, y0), as SVG's implementation notes derive its centre.
function arcCurves(x0, y0, rx, ry, degrees, large, sweep, x, y) {
  if (!rx || !ry || (x0 === x && y0 === y)) return [];
  const phi = degrees * Math.PI / 180, cos = Math.cos(phi), sin = Math.sin(phi);
  const dx = (x0 - x) / 2, dy = (y0 - y) / 2, px = cos * dx + sin * dy, py = cos * dy - sin * dx;
  const grow = Math.sqrt(Math.max(1, (px / rx) ** 2 + (py / ry) ** 2));
  rx *= grow;
  ry *= grow;
  const size = Math.sqrt(Math.max(0, (rx * ry) ** 2 / ((rx * py) ** 2 + (ry * px) ** 2) - 1)) * (large === sweep ? -1 : 1);
  const cx = size * rx * py / ry, cy = -size * ry * px / rx;
  const from = Math.atan2((py - cy) / ry, (px - cx) / rx);
  let turn = Math.atan2((-py - cy) / ry, (-px - cx) / rx) - from;
  if (sweep && turn < 0) turn += 2 * Math.PI;
  if (!sweep && turn > 0) turn -= 2 * Math.PI;
  const parts = Math.ceil(Math.abs(turn) / (Math.PI / 2) - 1e-9), step = turn / parts, reach = 4 / 3 * Math.tan(step / 4);
  const place = (a, b) => [cos * rx * a - sin * ry * b + cos * cx - sin * cy + (x0 + x) / 2, sin * rx * a + cos * ry * b + sin * cx + cos * cy + (y0 + y) / 2];
  return Array.from({length: parts}, (_, i) => {
    const a = from + i * step, b = a + step;
    return [...place(Math.cos(a) - reach * Math.sin(a), Math.sin(a) + reach * Math.cos(a)), ...place(Math.cos(b) + reach * Math.sin(b), Math.sin(b) - reach * Math.cos(b)), ...place(Math.cos(b), Math.sin(b))];
  });
}

const ARGUMENTS = {M: 2, L: 2, H: 1, V: 1, C: 6, S: 4, Q: 4, A: 7, Z: 0};

// A path's data as PDF operators; lower-case commands are relative.
function pdfPath(d) {
  const tokens = d.match(/[a-df-zA-DF-Z]|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/g) ?? [];
  let out = "", x = 0, y = 0, startX = 0, startY = 0, at = 0, command = "M", lastX = 0, lastY = 0;
  const write = (numbers, operator) => { out += numbers.map(pdfNumber).join(" ") + ` ${operator}\n`; };
  while (at < tokens.length) {
    if (/[a-zA-Z]/.test(tokens[at])) command = tokens[at++];
    const name = command.toUpperCase(), count = ARGUMENTS[name];
    if (count === undefined) throw new Error(`a path has the command ${command}`);
    const values = tokens.slice(at, at + count).map(Number);
    at += count;
    if (command !== name) values.forEach((value, i) => { values[i] += name === "A" ? (i === 5 ? x : i === 6 ? y : 0) : name === "V" ? y : name === "H" || i % 2 === 0 ? x : y; });
    if (name === "Z") {
      out += "h\n";
      [x, y] = [startX, startY];
      continue;
    }
    const [endX, endY] = name === "H" ? [values[0], y] : name === "V" ? [x, values[0]] : values.slice(-2);
    if (name === "M") write([endX, endY], "m");
    else if (name === "L" || name === "H" || name === "V") write([endX, endY], "l");
    else if (name === "A") arcCurves(x, y, ...values.slice(0, 3), values[3] !== 0, values[4] !== 0, endX, endY).forEach((curve) => write(curve, "c"));
    else if (name === "Q") write([x + 2 / 3 * (values[0] - x), y + 2 / 3 * (values[1] - y), endX + 2 / 3 * (values[0] - endX), endY + 2 / 3 * (values[1] - endY), endX, endY], "c");
    else write(name === "S" ? [2 * x - lastX, 2 * y - lastY, ...values] : values, "c");
    [lastX, lastY] = name === "C" ? values.slice(2, 4) : name === "S" ? values.slice(0, 2) : [endX, endY];
    [x, y] = [endX, endY];
    if (name === "M") {
      [startX, startY] = [x, y];
      command = command === "M" ? "L" : "l";
    }
  }
  return out;
}

function pdfTransform(text) {
  return [...(text ?? "").matchAll(/(\w+)\(([^)]*)\)/g)].map(([, name, list]) => {
    const [a, b = 0, c = 0] = list.split(/[\s,]+/).filter(Boolean).map(Number);
    if (name === "translate") return `1 0 0 1 ${pdfNumber(a)} ${pdfNumber(b)} cm\n`;
    if (name === "scale") return `${pdfNumber(a)} 0 0 ${pdfNumber(b || a)} 0 0 cm\n`;
    const turn = a * Math.PI / 180, cos = pdfNumber(Math.cos(turn)), sin = pdfNumber(Math.sin(turn));
    return `1 0 0 1 ${pdfNumber(b)} ${pdfNumber(c)} cm\n${cos} ${sin} ${pdfNumber(-Math.sin(turn))} ${cos} 0 0 cm\n1 0 0 1 ${pdfNumber(-b)} ${pdfNumber(-c)} cm\n`;
  }).join("");
}

// A text at the origin of its transformation, upright although the page's y points down.
function pdfText(node, fill, fonts) {
  const size = parseFloat(node.getAttribute("font-size") ?? "11"), isBold = /bold|[6-9]00/.test(node.getAttribute("font-weight") ?? "");
  const font = isBold ? fonts.bold : fonts.regular;
  let out = "";
  const lines = node.querySelector("tspan") ? [...node.querySelectorAll("tspan")] : [node];
  let y = parseFloat(node.getAttribute("y") ?? "0");
  for (const line of lines) {
    y += parseFloat(line.getAttribute("dy") ?? "0") || 0;
    const {codes, width} = font.take(line.textContent);
    const anchor = node.getAttribute("text-anchor"), shift = anchor === "middle" ? 0.5 : anchor === "end" ? 1 : 0;
    const x = parseFloat(node.getAttribute("x") ?? "0") - shift * width * size;
    if (codes) out += `BT ${fill} rg /${font.name} ${pdfNumber(size)} Tf 1 0 0 -1 ${pdfNumber(x)} ${pdfNumber(y)} Tm <${codes}> Tj ET\n`;
  }
  return out;
}

// Writes an element and what it holds; `states` collects the opacities, which PDF names, and `fonts` the glyphs.
function pdfElement(node, states, fonts) {
  const value = (name, other) => node.getAttribute(name) ?? other;
  const opacity = Number(value("opacity", 1));
  if (opacity === 0 || node.tagName === "defs" || node.tagName === "title") return "";
  const body = pdfTransform(value("transform", "")) + (node.tagName === "text" ? "" : [...node.children].map((child) => pdfElement(child, states, fonts)).join(""));
  if (node.tagName === "g" || node.tagName === "svg") return `q\n${body}Q\n`;
  const inherited = (name, other) => node.closest(`[${name}]`)?.getAttribute(name) ?? other;
  const fill = inherited("fill", "black"), stroke = inherited("stroke", "none");
  const isFilled = fill !== "none" && fill !== "transparent" && Number(value("fill-opacity", 1)) > 0;
  const isStroked = stroke !== "none" && stroke !== "transparent" && Number(value("stroke-opacity", 1)) > 0 && Number(value("stroke-width", 1)) > 0;
  const state = `/ca ${pdfNumber(opacity * Number(value("fill-opacity", 1)))} /CA ${pdfNumber(opacity * Number(value("stroke-opacity", 1)))}`;
  if (!states.includes(state)) states.push(state);
  const begin = `q\n${body}/G${states.indexOf(state)} gs\n`;
  if (node.tagName === "text") return isFilled ? begin + pdfText(node, pdfColor(fill), fonts) + "Q\n" : "";
  const number = (name) => Number(value(name, 0));
  const shape = node.tagName === "path" ? pdfPath(value("d", ""))
    : node.tagName === "line" ? `${["x1", "y1"].map((name) => pdfNumber(number(name))).join(" ")} m\n${["x2", "y2"].map((name) => pdfNumber(number(name))).join(" ")} l\n`
    : node.tagName === "rect" ? `${["x", "y", "width", "height"].map((name) => pdfNumber(number(name))).join(" ")} re\n` : "";
  if (!shape || (!isFilled && !isStroked)) return "";
  const dashes = value("stroke-dasharray", "").split(/[\s,]+/).filter(Boolean).map(Number).map(pdfNumber).join(" ");
  const style = (isFilled ? `${pdfColor(fill)} rg\n` : "")
    + (isStroked ? `${pdfColor(stroke)} RG ${pdfNumber(Number(value("stroke-width", 1)))} w [${dashes}] 0 d ${value("stroke-linecap") === "round" ? 1 : 0} J\n` : "");
  return begin + style + shape + (isFilled && isStroked ? "B\n" : isFilled ? "f\n" : "S\n") + "Q\n";
}

// The bytes of the PDF.
function pdfOfSvg(text) {
  const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  const width = parseFloat(svg.getAttribute("width")), height = parseFloat(svg.getAttribute("height")), states = [];
  const fonts = {regular: new PdfFont("F1", "regular"), bold: new PdfFont("F2", "bold")};
  const content = `${POINTS_PER_PIXEL} 0 0 -${POINTS_PER_PIXEL} 0 ${pdfNumber(height * POINTS_PER_PIXEL)} cm\n` + pdfElement(svg, states, fonts);
  const used = Object.values(fonts).filter((font) => font.isUsed()), first = 5;
  const place = (k) => first + k * PdfFont.OBJECTS;
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${pdfNumber(width * POINTS_PER_PIXEL)} ${pdfNumber(height * POINTS_PER_PIXEL)}] /Contents 4 0 R `
      + `/Resources << /Font << ${used.map((font, k) => `/${font.name} ${place(k)} 0 R`).join(" ")} >> `
      + `/ExtGState << ${states.map((state, i) => `/G${i} << ${state} >>`).join(" ")} >> >> >>`,
    pdfStream(content),
    ...used.flatMap((font, k) => font.objects(place(k))),
  ];
  let file = "%PDF-1.4\n";
  const places = objects.map((object, i) => {
    const place = file.length;
    file += `${i + 1} 0 obj\n${object}\nendobj\n`;
    return place;
  });
  const table = file.length;
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${places.map((place) => `${String(place).padStart(10, "0")} 00000 n \n`).join("")}`
    + `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${table}\n%%EOF\n`;
  return Uint8Array.from(file, (character) => character.charCodeAt(0));
}
