"""Draws a Mermaid sequence diagram as SVG, so that a page needs neither a script nor the network for it.

It knows what the documents use: `participant X as NAME`, the arrows ->> and -->>, `Note over X` or `Note over X,Y`, and `loop` and `opt` up to their
`end`. Any other line is an error.
"""
import html
import re
import textwrap

COLUMN, LINE, LETTER, MARGIN = 190, 17, 7, 12  # pixels: between participants, of a line of text, of a letter, around boxes
PARTICIPANT = re.compile(r"participant (\w+)(?: as (.+))?$")
ARROW = re.compile(r"(\w+)(--?)>>(\w+): (.+)$")
NOTE = re.compile(r"Note over (\w+)(?:,(\w+))?: (.+)$")
BLOCK = re.compile(r"(loop|opt) (.+)$")


def wrapped(text, width):
    """Returns the lines of a text in a box of this width; <br/> begins a line."""
    return [line for part in re.split(r"<br ?/?>", text) for line in textwrap.wrap(part, max(8, int(width / LETTER)))]


class Drawing:
    def __init__(self):
        self.names, self.shapes, self.blocks, self.y = [], [], [], 0

    def x(self, name):
        return COLUMN / 2 + COLUMN * self.names.index(name)

    def text(self, x, y, lines, anchor="middle", kind=""):
        for number, line in enumerate(lines):
            self.shapes.append(f'<text x="{x:g}" y="{y + LINE * number:g}" text-anchor="{anchor}"{kind}>{html.escape(line)}</text>')

    def box(self, left, top, right, bottom, kind):
        self.shapes.append(f'<rect class="{kind}" x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}" rx="4"/>')

    def heads(self, labels):
        lines = [wrapped(label, COLUMN - 4 * MARGIN) for label in labels]
        self.y = 2 * MARGIN + LINE * max(map(len, lines))
        for name, label in zip(self.names, lines):
            self.box(self.x(name) - COLUMN / 2 + MARGIN, 0, self.x(name) + COLUMN / 2 - MARGIN, self.y, "participant")
            self.text(self.x(name), self.y / 2 - LINE * (len(label) - 1) / 2 + 4, label, kind=' class="name"')

    def arrow(self, sender, kind, receiver, text):
        begin, end = self.x(sender), self.x(receiver)
        lines = wrapped(text, max(abs(end - begin), COLUMN) - 2 * MARGIN)
        self.y += 2 * MARGIN
        dashes = ' class="dashed"' if kind == "--" else ""
        if sender == receiver:
            self.text(begin + MARGIN, self.y, lines, "start")
            self.y += LINE * len(lines) - 8
            path = f"M{begin:g} {self.y:g} h{COLUMN / 4:g} v{LINE} h{-COLUMN / 4 + 2:g}"
            self.y += LINE
        else:
            self.text((begin + end) / 2, self.y, lines)
            self.y += LINE * len(lines) - 8
            path = f"M{begin:g} {self.y:g} H{end - (2 if end > begin else -2):g}"
        self.shapes.append(f'<path{dashes} d="{path}" marker-end="url(#arrow)"/>')

    def note(self, first, last, text):
        left, right = self.x(first) - COLUMN / 2 + MARGIN / 2, self.x(last or first) + COLUMN / 2 - MARGIN / 2
        lines = wrapped(text, right - left - 2 * MARGIN)
        top, self.y = self.y + MARGIN, self.y + 2 * MARGIN + LINE * len(lines) + 4
        self.box(left, top, right, self.y, "note")
        self.text((left + right) / 2, top + LINE, lines)

    def open_block(self, kind, text):
        self.y += 2 * MARGIN
        self.blocks.append(self.y - LINE)
        self.text(8 * len(self.blocks), self.y, [f"{kind}: {text}"], "start", ' class="name"')

    def close_block(self):
        self.y += MARGIN
        inset = 4 * len(self.blocks)
        self.box(inset, self.blocks.pop(), COLUMN * len(self.names) - inset, self.y, "block")

    def svg(self, title):
        bottom, width = self.y + MARGIN, COLUMN * len(self.names)
        lines = "".join(f'<line x1="{self.x(name):g}" x2="{self.x(name):g}" y1="40" y2="{bottom:g}"/>' for name in self.names)
        marker = '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'
        return (
            f'<div class="sequence"><svg viewBox="-1 -1 {width + 2} {bottom + 2:g}" width="{width + 2}" style="min-width: min(40rem, {width + 2}px)" role="img" aria-label="{html.escape(title)}">'
            f'{marker}<g class="lines">{lines}</g>{"".join(self.shapes)}</svg></div>'
        )


def picture(text, place):
    """Returns the HTML of a diagram. `place` names its page in errors."""
    lines = [line.strip() for line in text.strip().splitlines()]
    if lines.pop(0) != "sequenceDiagram":
        raise ValueError(f"{place}: the site draws Mermaid diagrams that begin with sequenceDiagram, and no others")
    drawing, labels = Drawing(), []
    while lines and (match := PARTICIPANT.match(lines[0])):
        drawing.names.append(match[1])
        labels.append(match[2] or match[1])
        lines.pop(0)
    drawing.heads(labels)
    for line in lines:
        if match := ARROW.match(line):
            drawing.arrow(*match.groups())
        elif match := NOTE.match(line):
            drawing.note(*match.groups())
        elif match := BLOCK.match(line):
            drawing.open_block(*match.groups())
        elif line == "end" and drawing.blocks:
            drawing.close_block()
        else:
            raise ValueError(f"{place}: the site cannot draw this line of a sequence diagram: {line}")
    return drawing.svg("Sequence diagram: " + ", ".join(labels))
