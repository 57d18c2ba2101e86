"""Saves a drawing as the report's page saves a chart, and looks at the PDF: its fonts are embedded, and its text can be read.

    python3 -B tests/install/pdf_fonts_test.py SOURCE GLYPHS.js

GLYPHS.js is what the build makes of the fonts (cmake/font_glyphs.cpp). Needs chromium and poppler-utils; exits with 77 without them.
"""

import base64
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TEXTS = {"f(x) − f* é ζ² ≤ 5% ∞": "", "top-5% (bold) Äß": ' font-weight="600"', "no glyph: 漢": ""}


def page(source, glyphs):
    """The HTML of a page that shows the bytes of the PDF, in base64."""
    folder = source / "scenarios/report/page"
    scripts = "\n".join(path.read_text().replace('"use strict";', "") for path in (glyphs, folder / "pdf_fonts.js", folder / "pdf.js"))
    lines = "".join(f'<text x="10" y="{20 + 20 * i}" font-size="12" fill="#000000"{bold}>{text}</text>' for i, (text, bold) in enumerate(TEXTS.items()))
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" width="300" height="90"><path d="M0,0 L10,10" stroke="#0060a0" fill="none"/>{lines}</svg>'
    return (f'<!DOCTYPE html><meta charset="utf-8"><body><script>{scripts}\n'
            f"const bytes = pdfOfSvg(`{drawing}`);\ndocument.body.textContent = btoa(String.fromCharCode(...bytes));</script>")


def run(words):
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=120).stdout


def main():
    source, glyphs = (pathlib.Path(word) for word in sys.argv[1:3])
    missing = [name for name in ("chromium", "pdffonts", "pdftotext") if shutil.which(name) is None]
    if missing or "regular" not in glyphs.read_text():
        print(f"SKIPPED: {', '.join(missing) or 'the fonts DejaVu'} not installed (chromium, poppler-utils, fonts-dejavu-core)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        html, pdf = pathlib.Path(folder) / "page.html", pathlib.Path(folder) / "chart.pdf"
        html.write_text(page(source, glyphs))
        dom = run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile", "--dump-dom", html.as_uri()])
        pdf.write_bytes(base64.b64decode(re.sub(r"<[^>]*>|\s", "", dom)))
        fonts = [line.split() for line in run(["pdffonts", str(pdf)]).splitlines()[2:]]
        text = run(["pdftotext", "-layout", str(pdf), "-"])
    faults = []
    if len(fonts) != 2:
        faults.append(f"{len(fonts)} fonts instead of the regular and the bold one")
    for font in fonts:
        if font[-5:-2] != ["yes", "yes", "yes"] or "TrueType" not in font:
            faults.append(f"{font[0]} is not an embedded TrueType font with its characters: {' '.join(font)}")
    for expected in (words.replace("漢", "?") for words in TEXTS):
        if expected not in text:
            faults.append(f"the text lacks {expected!r}: {text!r}")
    print("\n".join(faults) or "the fonts of a chart's PDF are embedded, and its text can be read")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
