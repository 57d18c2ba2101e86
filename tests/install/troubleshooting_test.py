#!/usr/bin/env python3
"""Every message that docs/troubleshooting.md quotes occurs in the sources. Messages are the lines of fenced blocks of "message"; a line that begins with
spaces continues the one before. Words of PLACEHOLDERS stand for what differs, and "..." for a part that is left out. With a program the test also
provokes some of them, and compares what is printed with the page.

    troubleshooting_test.py SOURCE [FEDBITS]      needs nothing but Python"""
import ast
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1]).resolve()
PROGRAM = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
PAGE = SOURCE / "docs" / "troubleshooting.md"
FOLDERS = ("apps", "clients", "cmake", "compressors", "fl_core", "net", "python", "research", "scenarios", "scripts", "server", "status", "study", "timing")
PLACEHOLDERS = ("BUILD", "FILE", "FOLDER", "HASH", "HOST", "KEY", "LIST", "N", "NAME", "REASON", "SIZE", "TEXT", "VALUE")
HOLE = "\0"  # where a source has code and not text
LEAST_PART, LEAST_WHOLE = 10, 3  # least characters of a part of a literal, and of a whole one, in a message
SIGNS = re.compile(r"[\s:;,.'\"()`?%/-]{1,3}")  # what may stand between them

CPP = re.compile(r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)|(?P<raw>R"(?P<mark>[^(\s]*)\((?P<inside>.*?)\)(?P=mark)")|"(?P<text>(?:\\.|[^"\\\n])*)"|(?P<char>(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+')""",
                 re.DOTALL)


def plain(text):
    """Returns text with single spaces, and holes in the place of what fmt and printf fill in."""
    text = re.sub(r"\{[^{}\s]*\}|%[-+0-9.]*(?:l|z)*[sdufg]", HOLE, text)
    return re.sub(r"\s+", " ", text)


def cpp_texts(code):
    """Returns the literals of C++ with a hole between those that code separates."""
    made, end = [], 0
    for match in CPP.finditer(code):
        if match["comment"] or match["char"]:
            continue
        if code[end:match.start()].strip():
            made.append(HOLE)
        made.append(match["inside"] if match["raw"] else re.sub(r"\\(.)", lambda one: " " if one[1] in "nt" else one[1], match["text"]))
        end = match.end()
    return "".join(made)


def python_texts(code):
    """Returns the literals of Python, with holes between them and in f-strings."""
    made = []

    class Texts(ast.NodeVisitor):
        def visit_JoinedStr(self, node):
            made.append("".join(part.value if isinstance(part, ast.Constant) else HOLE for part in node.values))

        def visit_Constant(self, node):
            if isinstance(node.value, str):
                made.append(node.value)

        def visit_Expr(self, node):
            if not isinstance(node.value, ast.Constant):  # a docstring is no message
                self.generic_visit(node)

    Texts().visit(ast.parse(code))
    return HOLE.join(made)


def shell_texts(code):
    """Returns the lines of a script of sh or CMake without comments and quotes, with holes in the place of variables and commands."""
    lines = [line for line in code.replace("\\\n", "").splitlines() if not line.lstrip().startswith("#")]
    text = re.sub(r"\$\([^()]*\)|\$\{[^{}]*\}|\$[A-Za-z0-9_*@#]+", HOLE, "\n".join(lines))
    return re.sub(r'"\s*\n\s*"|\\n', " ", text).replace('\\"', "\1").replace('"', "").replace("\1", '"').replace("\\`", "`")


READERS = {".cpp": cpp_texts, ".hpp": cpp_texts, ".h": cpp_texts, ".cu": cpp_texts, ".cuh": cpp_texts, ".py": python_texts, ".sh": shell_texts, ".cmake": shell_texts,
           ".txt": shell_texts}


def source_texts():
    """Returns the texts of the source files."""
    files = [path for folder in FOLDERS for path in sorted((SOURCE / folder).rglob("*")) if path.suffix in READERS] + [SOURCE / "quickstart.sh", SOURCE / "CMakeLists.txt"]
    return [plain(READERS[path.suffix](path.read_text())) for path in files]


def messages_in(page):
    """Returns the messages of a page, those of several lines joined."""
    found = []
    for block in re.findall(r"^```message\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith(" ") and found:
                found[-1] += " " + line.strip()
            elif line.strip():
                found.append(line.strip())
    return found


def without_prefix(message):
    """Returns a message without what the program or Python writes before every one: "fedbits: ", "warning: ", the kind of an exception, a place."""
    return re.sub(r"^(?:fedbits: |warning: |error: |[A-Z]\w+Error: |FILE:N:N: |FILE: |--set KEY=VALUE: |--[a-z-]+ ?[A-Z]*: )+", "", message)


def pieces_of(message):
    """Returns the pieces of a message with the kind of gap between them: "hole" for placeholders, "left out" for three dots."""
    parts = re.split(rf"(\.\.\.|(?<![A-Za-z_])(?:{'|'.join(PLACEHOLDERS)})(?![A-Za-z_]))", message)
    return [(part, None) if i % 2 == 0 else ("", "left out" if part == "..." else "hole") for i, part in enumerate(parts) if i % 2 or part.strip()]


class Sources:
    """The literal texts of all sources, between which nothing is found."""

    def __init__(self, texts):
        fragments = dict.fromkeys(fragment for text in texts for fragment in text.split(HOLE) if fragment.strip())
        self.whole = set(fragments)
        self.between = {fragment for fragment in fragments if re.search(r"[:;,.'\"()]", fragment)}  # a word alone would fit into any message
        self.joined = HOLE.join(fragments)
        self.longest = max(map(len, fragments))

    def longest_from(self, text):
        """Returns how many characters of the beginning of a text occur in one literal."""
        low, high = 0, min(len(text), self.longest)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if text[:middle] in self.joined else (low, middle - 1)
        return low

    def covers(self, text):
        """Returns whether a text is a whole literal, or can be put together from parts of literals of at least LEAST_PART characters, from whole literals with
        a sign, and from short signs between them. Messages are composed in several places, so their parts need not stand in one file."""
        if text in self.whole and not text.isalnum():
            return True
        reached = {0}
        for place in range(len(text)):
            if place not in reached:
                continue
            rest = text[place:]
            found = self.longest_from(rest)
            reached |= {place + length for length in range(LEAST_PART, found + 1)}
            reached |= {place + length for length in range(LEAST_WHOLE, min(found, LEAST_PART) + 1) if rest[:length] in self.between}
            if between := SIGNS.match(rest):
                reached |= {place + length for length in range(1, between.end() + 1)}
        return len(text) in reached


def problem_of(message, sources):
    """Returns what is wrong with a message, "" if its text is that of the sources."""
    pieces = [text for text, gap in pieces_of(without_prefix(message)) if not gap]
    if max((len(text.strip()) for text in pieces), default=0) < LEAST_PART:
        return f"{message!r} has no piece of {LEAST_PART} characters of text"
    lost = [text for text in pieces if not sources.covers(text) and not sources.covers(text.strip())]
    return f"no source prints {lost[0]!r} of {message!r}" if lost else ""


def problems_of(page, sources):
    """Returns what is wrong with the messages of a page."""
    return [problem for problem in (problem_of(message, sources) for message in messages_in(page)) if problem]


def check_planted(page, sources):
    """Returns the wrong messages that are not found out, and how many were planted: in each message the first, the longest and the last word are replaced."""
    missed, planted = [], 0
    for message in messages_in(page):
        words = message.split(" ")
        places = [place for place, word in enumerate(words) if re.fullmatch(r"[a-z]{4,}[:;,]?", word)]
        for place in {*places[:1], *places[-1:], *sorted(places, key=lambda one: len(words[one]))[-1:]}:
            wrong = " ".join(words[:place] + ["zebra"] + words[place + 1:])
            planted += 1
            if not problem_of(wrong, sources):
                missed.append(f"a planted wrong message is not found out: {wrong!r}")
    return missed, planted


# Commands of the program and what the page says that they print.
COMMANDS = (
    ("run", "missing.toml"), ("run", "study.toml", "--set", "rounds=ten"), ("run", "study.toml", "--set", "round=10"), ("run", "study.toml", "--device", "gpu"),
    ("run", "study.toml", "--set", "data.name=libsvm/a9a"), ("run", "study.toml", "--data", "nowhere"), ("run", "wrong.toml"), ("run", "study.toml", "--plugin", "nothing.so"),
    ("run", "diverging.toml", "--out", "diverged"), ("report", "nothing", "--text"), ("runn", "study.toml"), ("list", "compressors", "topk"),
    ("sweep", "study.toml", "--memory", "1M", "--out", "results"), ("run", "study.toml", "--out", "/proc/results"),
)
STUDY = """name = "study"
rounds = 3
data = { name = "mushrooms", test_fraction = 0.2 }
model = { kind = "logistic_regression", l2 = "L/1e4" }
local = { kind = "gradient", learning_rate = "1/L" }
partition = { kind = "shuffled", clients = 5 }
"""


def check_provoked(page):
    """Runs the program and returns the commands that print what the page does not quote."""
    patterns = []
    for message in messages_in(page):
        pieces = pieces_of(without_prefix(message))
        patterns.append(re.compile("".join(".*?" if gap else re.escape(text.strip()) + r"\s*" for text, gap in pieces)))
    unknown = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "study.toml").write_text(STUDY)
        (folder / "wrong.toml").write_text(STUDY.replace('"L/1e4" }', '"L/1e4" }\nfeedback.up = { kind = "ef41" }'))
        (folder / "diverging.toml").write_text(STUDY.replace('"1/L"', '"1e30/L"'))
        for command in COMMANDS:
            environment = {key: value for key, value in os.environ.items() if key != "FEDBITS_DATA"}
            done = subprocess.run([PROGRAM, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)
            said = " ".join((done.stdout + done.stderr).split())
            if done.returncode == 0 or not any(pattern.search(said) for pattern in patterns):
                unknown.append(f"fedbits {' '.join(command)} prints what the page does not quote (exit code {done.returncode}): {said}")
    return unknown


def main():
    page, texts = PAGE.read_text(), source_texts()
    found, sources = messages_in(page), Sources(texts)
    problems = problems_of(page, sources)
    if len(found) < 50:
        problems.append(f"only {len(found)} messages were found in {PAGE.name}")
    missed, planted = check_planted(page, sources)
    problems += missed
    if PROGRAM:
        problems += check_provoked(page)
    for problem in problems:
        print(f"FAILED: {problem}")
    print(f"{len(found)} messages were looked for in {len(texts)} sources, and {planted} wrong ones were planted: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
