#!/usr/bin/env python3
"""Names in spans of code on the pages for people who write parts or change fedbits are names of the sources.

- Every word of a span occurs in a header or a source; comments do not count.
- `A::b` is a member b of a class, struct or enumeration A of a header.
- The first column of a table whose first title is "field of `A`" or "function of `A`" names members of A.
- A list in braces, as `{rows, cols}`, names members of one struct.
- A file in a span exists, and so does every option of a command of fedbits.

    docs_names_test.py SOURCE [PAGE...]        by default the how-to pages, plugins.md, cpp.md, architecture.md and tour.md
"""
import pathlib
import re
import sys

FOLDERS = ("fl_core", "compressors", "clients", "timing", "server", "scenarios", "net", "checks", "study", "status", "apps", "include", "examples", "cmake",
           "tests/gpu", "tests/properties", "tests/support", "tests/emulator")  # fmt: skip
CODE = {".hpp", ".cpp", ".cu", ".cuh", ".inc", ".js", ".proto", ".cmake", ".in", ".toml"}
MEMBERS = {".hpp", ".cuh"}
FILE = re.compile(r"(?:[\w.-]+/)+(?:[\w.-]+\.\w+)?|[\w-]+\.(?:hpp|cpp|cuh?|py|toml|txt)")
# Words that a reader replaces, and names of other programs.
OTHERS = {"NAME", "cmake", "ninja", "make", "apt", "get", "install", "cpack", "export", "source", "bash", "zsh", "fish", "ctest", "librandom123", "dev",
          "build", "std"}  # fmt: skip


def without_comments(path, text):
    """Returns code without its comments. Strings stay: they hold the keys of scenarios and the names of parts."""
    if path.suffix in (".cmake", ".in", ".toml") or path.name == "CMakeLists.txt":
        return re.sub(r"(?m)^\s*#.*$", "", text)
    return re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', lambda found: found.group(1) or " ", text, flags=re.S)


def body_at(text, begin):
    """Returns the text between the brace at `begin` and the one that closes it."""
    depth = 0
    for end in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return text[begin + 1 : end]
    return text[begin:]


class Sources:
    def __init__(self, source):
        self.source = source
        files = [path for folder in FOLDERS for path in sorted((source / folder).rglob("*")) if path.suffix in CODE or path.name == "CMakeLists.txt"]
        files += [source / "CMakeLists.txt", source / "CMakePresets.json"]
        self.files = {path.relative_to(source).as_posix() for path in files}
        texts = {path: without_comments(path, path.read_text(errors="replace")) for path in files}
        self.words = set(re.findall(r"[A-Za-z_]\w*", "\n".join(texts.values())))
        self.options = set(re.findall(r"--[a-z][a-z-]*", "\n".join(text for path, text in texts.items() if "apps" in path.parts)))
        self.bodies = {}  # of each name, the bodies of its definitions in headers
        for path, text in texts.items():
            if path.suffix in MEMBERS:
                text = re.sub(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'', '""', text)
                for found in re.finditer(r"\b(?:struct|class|enum)\s+(?:FL_API\s+|alignas\([^)]*\)\s*)*(\w+)\s*(?:final\s*)?(?::(?!:)[^;{}()]*)?\{", text):
                    self.bodies.setdefault(found.group(1), []).append(body_at(text, found.end() - 1))

    def has_member(self, name, member):
        return any(re.search(rf"\b{member}\b", body) for body in self.bodies.get(name, []))

    def has_struct_of(self, members):
        return any(all(re.search(rf"\b{member}\b", body) for member in members) for bodies in self.bodies.values() for body in bodies)

    def has_file(self, name):
        name = name.rstrip("/")
        return (self.source / name).exists() or any(f"/{name}/" in f"/{file}/" for file in self.files)


def faults_of_span(span, sources, own_files):
    """Yields what is wrong with the code between two backticks. `own_files` are the files that the page makes."""
    if re.match(r"(\./|apt-get|cmake|ctest|cpack|export|source|pip|python3?)\b", span) or span.startswith(("$", "~", "share/", "include/", "bin/", "lib/", "build")):
        return  # a command of another program, or a file of an installation or a build
    if span.startswith("fedbits "):
        yield from (f"no command has the option {option}" for option in re.findall(r"--[a-z][a-z-]*", span) if option not in sources.options)
        return
    file = FILE.fullmatch(span)
    if file:
        if not sources.has_file(span) and span not in own_files and not re.search(r"\b(NAME|my_\w+|NNNN)\b", span):
            yield "there is no such file"
        return
    if re.fullmatch(r"\{[a-z_]\w+(, [a-z_]\w+)+\}", span) and not sources.has_struct_of(re.findall(r"\w+", span)):
        yield "no struct of a header has these members"
    for name, member in re.findall(r"\b(\w+)(?:<\w+>)?(?=::(\w+))", span):
        if name in sources.bodies and not sources.has_member(name, member):
            yield f"{name} has no member {member}"
    for word in re.findall(r"(?<![\w$])[A-Za-z_]\w{2,}", re.sub(r"-D(?=[A-Z])", "", span)):
        if word not in sources.words and word not in OTHERS and not re.fullmatch(r"my_\w+|[A-Z]", word):
            yield f"no source has the word {word}"


def spans_of(line):
    return re.findall(r"(?<!`)`([^`]+)`(?!`)", line)


def faults_of_page(text, sources):
    """Yields (line, span, fault) of every name that the sources do not have, and counts the spans in `tried`."""
    fenced, table_of = False, ""
    own_files = set(re.findall(r"(?m)^```\w+\n(?:#|//) ([\w-]+\.\w+)$", text) + re.findall(r"(?m)^cat > ([\w.-]+)", text))
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        if fenced or line.startswith("    "):
            continue
        head = re.match(r"\| (?:field|function) of `(\w+)` \|", line)
        table_of = head.group(1) if head else table_of if line.startswith("|") else ""
        if head and table_of not in sources.bodies:
            yield number, table_of, "no header defines it"
        if table_of and not head:
            first = line.split("|")[1]
            yield from ((number, span, f"{table_of} has no such member") for span in spans_of(first) if not sources.has_member(table_of, span))
        for span in spans_of(line):
            sources.tried += 1
            yield from ((number, span, fault) for fault in faults_of_span(span, sources, own_files))


# Wrong names of every kind, which have to be found once each, and right ones.
WRONG = """
`{name, begin, rows, columns}` and `RandomSequence::unifrom` and `Contract::Holds::pointwisely` and `no_such_word` and `fl_core/none.hpp` and
`none_such.cpp` and `fedbits check --no-such-option`

| field of `PartitionRequest` | meaning |
|---|---|
| `num_cients` | |
| `num_rows`, `seed` | |

| function of `NoSuchClass` | meaning |
"""
FOUND = ["{name, begin, rows, columns}", "RandomSequence::unifrom", "RandomSequence::unifrom", "Contract::Holds::pointwisely", "Contract::Holds::pointwisely",
         "no_such_word", "fl_core/none.hpp", "none_such.cpp", "fedbits check --no-such-option", "num_cients", "num_cients", "NoSuchClass",
         "NoSuchClass"]  # fmt: skip
RIGHT = """
`{name, begin, rows, cols}` and `RandomSequence::uniform` and `fl_core/data/partitioner.hpp` and `fedbits check --plugin my_part.so` and `Contract::kappa_holds`

| field of `PartitionRequest` | meaning |
|---|---|
| `num_clients`, `label` | |
"""


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    sources = Sources(source)
    sources.tried = 0
    found = [span for _, span, _ in faults_of_page(WRONG, sources)]
    assert sorted(found) == sorted(FOUND), found
    assert not list(faults_of_page(RIGHT, sources)), list(faults_of_page(RIGHT, sources))
    docs = source / "docs"
    pages = [source / page for page in sys.argv[2:]] or [*sorted(docs.glob("how-to-add-*.md")), docs / "plugins.md", docs / "cpp.md", docs / "architecture.md", docs / "tour.md"]
    sources.tried, failed = 0, 0
    for page in pages:
        for number, span, fault in faults_of_page(page.read_text(), sources):
            failed += 1
            print(f"FAILED: {page.relative_to(source)}:{number}: `{span}`: {fault}")
    print(f"{sources.tried} spans of code on {len(pages)} pages were tried, {failed} failed")
    if len(pages) < 2 or sources.tried < 300:
        print("FAILED: too few spans were found")
        failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
