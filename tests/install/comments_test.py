#!/usr/bin/env python3
"""Comments of the sources name what they describe.

A function's comment begins with a verb (Returns, Adds, Throws), a type's or a member's with a noun. A comment that begins with one of WORDS
does neither: it is a clause without a sentence. The test covers the first word of every comment that stands on lines of its own; comments
behind code, which are short phrases, are not covered.

usage: comments_test.py SOURCE_FOLDER
"""

import pathlib
import re
import sys

from sizes_test import DEVICE, FOLDERS, HOST, LITERALS

WORDS = ("What", "Who", "Those", "How", "Of")
ALL_FOLDERS = FOLDERS + ("bench", "examples", "python/src", "research", "tests")
SUFFIXES = HOST | DEVICE | {".h", ".proto"}


def first_words(text):
    """Yields (line, word) of every comment that stands on lines of its own. Comments with // below each other are one comment."""
    last, line, at = None, 1, 0  # last: the line and the column of the last comment with //
    for match in LITERALS.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        if match.lastgroup not in ("line", "block"):
            continue
        begin = text.rfind("\n", 0, at) + 1
        is_line, is_behind_code = match.lastgroup == "line", bool(text[begin:at].strip())
        is_continued = is_line and last == (line - 1, at - begin)
        last = (line, at - begin) if is_line else None
        if not is_behind_code and not is_continued:
            yield line, re.match(r"/[/*]+[!<]*\s*(\w*)", match.group()).group(1)


def problems_of(file, text):
    for line, word in first_words(text):
        if word.capitalize() in WORDS:
            yield f'{file}:{line}: the comment begins with "{word}"; begin with a verb for a function, with a noun for anything else'


SAMPLE = '''// What the file is for.
//
// Who reads it.
int a;  // Of a kind.
        // How it is set.
int b;  // a number
// Those of b.

namespace fl {
  // Returns a number.
  // How it is found is not said.
  int f();
  // of a client.
  int g();
/* Those of
   // What
   others */
const char* text = R"(
// What a text has.
)", *other = "// How";
/// Whatever the number is.
int h();
// Whose it is.
//
int i();
  }
'''
LINES = [1, 7, 13, 15]


def check_scanner():
    """Throws AssertionError unless exactly the planted comments of the sample are found."""
    found = [int(problem.split(":")[1]) for problem in problems_of("sample.hpp", SAMPLE)]
    assert found == LINES, found


def main():
    check_scanner()
    source = pathlib.Path(sys.argv[1])
    files = [path for folder in ALL_FOLDERS for path in sorted((source / folder).rglob("*")) if path.suffix in SUFFIXES]
    problems = []
    for path in files:
        file = path.relative_to(source).as_posix()
        problems += problems_of(file, path.read_text(encoding="utf-8"))
    print("\n".join(problems) or f"no comment begins with {', '.join(WORDS[:-1])} or {WORDS[-1]} in {len(files)} sources")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
