#!/usr/bin/env python3
"""Functions, classes and files of the library and the programs stay small.

A function has at most 50 lines from its opening brace to its closing one, lambdas in it included. A class has at most 15 data members
of its own, at most 20 with those of the types inside it, and declares at most 12 virtual functions, overrides included and destructors
not. A file for the host has at most 450 lines.
Tables may have more members: structs of a scenario's keys, whose names end in Options, and those of TABLES. Of branches of the preprocessor
the first one counts, and macros do not.

usage: sizes_test.py SOURCE_FOLDER [--all]      --all lists every function and class with its numbers
"""

import pathlib
import re
import sys

FOLDERS = ("fl_core", "clients", "timing", "server", "compressors", "scenarios", "net", "apps", "checks", "study", "status")
HOST, DEVICE = {".cpp", ".hpp"}, {".cu", ".cuh"}
LINES_OF_FUNCTION, LINES_OF_FILE, DATA_MEMBERS, ALL_MEMBERS, VIRTUALS = 50, 450, 15, 20, 12
TABLES = ("Scenario", "RunRecord", "RoundRow")  # keys of a scenario, and columns of the store

LITERALS = re.compile(
    r"""(?P<line>//(?:\\\n|[^\n])*)|(?P<block>/\*.*?\*/)|(?P<raw>\bu?8?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)")"""
    r"""|(?P<text>"(?:\\.|[^"\\\n])*")|(?P<char>(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+')""",
    re.DOTALL,
)
TOKENS = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|->|\n|[^\s\w]")
CLASS_KEYS = ("class", "struct", "union")
AFTER_PARAMETERS = (")", "const", "noexcept", "override", "final", "mutable", "volatile", "&", "try")
NO_MEMBER = ("using", "typedef", "friend", "static", "constexpr", "template", "enum", "operator", "concept", "static_assert")


def without_literals(text):
    """Returns the text without comments and the contents of literals; lines keep their numbers."""

    def blank(match):
        lines = "\n" * match.group().count("\n")
        return lines if match.lastgroup in ("line", "block") or match.group("line") or match.group("block") else '""' + lines

    return LITERALS.sub(blank, text)


def without_directives(text):
    """Returns the text without directives and without all branches of a condition but the first; lines keep their numbers."""
    kept, skipped, goes_on = [], [], False
    for line in text.split("\n"):
        directive = re.match(r"\s*#\s*(\w+)", line)
        if directive and not goes_on:
            word = directive.group(1)
            if word.startswith("if"):
                skipped.append(False)
            elif word.startswith("el"):
                skipped[-1] = True
            elif word == "endif":
                skipped.pop()
        is_directive = bool(directive) or goes_on
        goes_on = is_directive and line.endswith("\\")
        kept.append("" if is_directive or any(skipped) else line)
    return "\n".join(kept)


def grouped(tokens, opening, closing):
    """Returns the tokens with every outermost group of brackets reduced to its two brackets."""
    kept, depth = [], 0
    for i, token in enumerate(tokens):
        if token == closing and depth > 0:
            depth -= 1
        if depth == 0:
            kept.append(token)
        if token == opening and (opening != "<" or (i > 0 and (tokens[i - 1].isidentifier()))):
            depth += 1
    return kept


def plain_head(head):
    """Returns the tokens of a declaration without template headers, attributes and alignment."""
    head = grouped(head, "(", ")")
    head = grouped(head, "<", ">")
    text = " ".join(head)
    text = re.sub(r"\[ \[.*?\] \]", " ", text)
    text = re.sub(r"\b(alignas|__align__|__launch_bounds__) \( \)", " ", text)
    text = re.sub(r"\btemplate < >", " ", text)
    return text.split()


class Scope:
    def __init__(self, kind, name, line):
        self.kind, self.name, self.line = kind, name, line
        self.head, self.members, self.nested, self.virtuals = [], 0, 0, 0

    def end_declaration(self, is_body):
        """Counts the declaration that the tokens read so far make up, then forgets them."""
        if self.kind == "class" and self.head:
            head = plain_head(self.head)
            if is_function_pointer(self.head):
                self.members += 1
            elif "virtual" in head or "override" in head or ("final" in head and "(" in head):
                self.virtuals += "~" not in head
            elif not is_body:
                self.members += declared_members(head)
        self.head = []


def is_function_pointer(head):
    return bool(re.match(r"[^(]*\( \* \w+ \) \(", " ".join(head)))


def declared_members(head):
    """Returns the number of data members that a declaration of a class adds."""
    if not head or any(token in NO_MEMBER for token in head) or head == ["{}"]:
        return 0
    if head[0] in CLASS_KEYS and (len(head) == 2 or (head[-1] == "{}" and len(head) > 2)):
        return 0  # a class that is declared or defined here
    declarators, depth, is_value = 1, 0, False
    for i, token in enumerate(head):
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token == "=" and depth == 0:
            is_value = True
        elif token == "," and depth == 0:
            declarators += 1
            is_value = False
        if token == "(" and not is_value:
            return 0
    return declarators


def kind_of(scope, prev):
    """Returns what the brace after the tokens of the scope's declaration opens: namespace, class, function, block or value."""
    raw = scope.head
    is_lambda = prev in (")", "]", "mutable") or ("->" in raw and "]" in raw[: raw.index("->")])
    if raw.count("(") > raw.count(")"):
        return "lambda" if is_lambda else "value"
    head = plain_head(raw)
    words = [token for token in head if token not in ("static", "const", "inline", "typedef", "constexpr")]
    if words and words[0] in CLASS_KEYS and "(" not in words and "=" not in words:
        return "class"
    if words and words[0] == "enum":
        return "value"
    if scope.kind in ("function", "block"):
        return "block"
    if words and words[0] in ("namespace", "extern"):
        return "namespace"
    if prev == "]" or ("=" in head and "operator" not in head):
        return "lambda" if is_lambda else "value"
    if "(" not in head:
        return "value"
    starts_list = any(a in AFTER_PARAMETERS and b == ":" for a, b in zip(head, head[1:]))
    if starts_list:
        return "function" if prev in (")", "}", "{}") else "value"
    return "function" if prev in AFTER_PARAMETERS or "->" in head or "requires" in head else "value"


def name_of(head):
    head = plain_head(head)
    if "=" in head and "operator" not in head:
        return head[head.index("=") - 1]
    if "(" in head:
        return " ".join(head[max(0, head.index("(") - 1) : head.index("(")])
    return next((token for token in reversed(head[: head.index(":")] if ":" in head else head) if token.isidentifier() and token != "final"), "?")


def parts_of(text):
    """Yields (kind, name, line, numbers) of every function and class of a source."""
    text = without_directives(without_literals(text))
    stack, line, prev = [Scope("namespace", "", 0)], 1, ""
    for token in TOKENS.findall(text):
        scope = stack[-1]
        if token == "\n":
            line += 1
            continue
        if token == "{":
            kind = kind_of(scope, prev)
            if scope.kind in ("function", "block", "value") and kind in ("value", "lambda"):
                kind = "block"
            name = name_of(scope.head)
            if kind in ("function", "namespace"):
                scope.end_declaration(is_body=True)
            stack.append(Scope("function" if kind == "lambda" else kind, name, line))
            stack[-1].is_expression = kind in ("value", "lambda", "block", "class")
        elif token == "}":
            stack.pop()
            if not stack:
                raise ValueError(f"line {line}: a closing brace too many")
            if scope.kind == "function":
                yield "function", scope.name, scope.line, (line - scope.line + 1,)
            if scope.kind == "class":
                all_members = scope.members + scope.nested
                if stack[-1].kind == "class":
                    stack[-1].nested += all_members
                yield "class", scope.name, scope.line, (scope.members, scope.virtuals, all_members)
            if scope.kind == "block" and not unbalanced(stack[-1].head) and "=" not in stack[-1].head and "return" not in stack[-1].head:
                stack[-1].head = []
            elif scope.is_expression:
                stack[-1].head.append("{}")
        elif token == ";" and not unbalanced(scope.head):
            scope.end_declaration(is_body=False)
        elif token == ":" and scope.kind == "class" and scope.head in (["public"], ["private"], ["protected"]):
            scope.head = []
        else:
            scope.head.append(token)
        prev = token
    if len(stack) != 1:
        raise ValueError(f"the brace of line {stack[-1].line} stays open")


def unbalanced(head):
    return head.count("(") > head.count(")")


def problems_of(file, text):
    if pathlib.Path(file).suffix in HOST and text.count("\n") > LINES_OF_FILE:
        yield f"{file} has {text.count(chr(10))} lines, more than {LINES_OF_FILE}"
    for kind, name, line, numbers in parts_of(text):
        where = f"{file}:{line}: {kind} {name} has"
        if kind == "function" and numbers[0] > LINES_OF_FUNCTION:
            yield f"{where} {numbers[0]} lines, more than {LINES_OF_FUNCTION}"
        is_table = name.endswith("Options") or name in TABLES
        if kind == "class" and numbers[0] > DATA_MEMBERS and not is_table:
            yield f"{where} {numbers[0]} data members, more than {DATA_MEMBERS}"
        if kind == "class" and numbers[2] > ALL_MEMBERS and not is_table:
            yield f"{where} {numbers[2]} data members with those of the types in it, more than {ALL_MEMBERS}"
        if kind == "class" and numbers[1] > VIRTUALS:
            yield f"{where} {numbers[1]} virtual functions, more than {VIRTUALS}"


# A source whose numbers are known: they show that the scanner counts, and that a limit can be passed.
SAMPLE = """
namespace fl {
template <class T, int kN = (1 > 0)>
class alignas(64) Sample : public Base<T> {
 public:
  explicit Sample(int a) : a_{a}, b_(a) {
    if (a > 0) b_ = '{';  // }
  }
  virtual ~Sample() = default;
  virtual int f() const = 0;
  [[nodiscard]] int g() const override { return [this] { return a_; }(); }
  using Tap = std::function<void(int, int)>;
  static constexpr int kSize = 3;

 private:
  struct Inner {
    std::map<int, std::vector<T>> both{}, other = {{1, {}}};
  };
  void h(int x, double (*y)(int));
  int a_, b_ = 2;
  double (*call_)(int, int) = nullptr;
  Inner inner_{};
};
#if defined(FL_SOMETHING)
void first() {
#else
void second(int) {
#endif
  text(R"({{{)", [](int) {
  });
}
const auto table = std::to_array<int>({1, 2});
const auto lambda = [](int x) -> std::vector<int> {
  return {x};
};
}
"""
NUMBERS = [
    ("function", "Sample", (3,)), ("function", "g", (1,)), ("class", "Inner", (2, 0, 2)), ("class", "Sample", (4, 2, 6)),
    ("function", "first", (7,)), ("function", "lambda", (3,)),
]  # fmt: skip


def check_scanner():
    """Throws AssertionError unless the sample has the numbers that are written here."""
    found = [(kind, name, numbers) for kind, name, _, numbers in parts_of(SAMPLE)]
    assert found == NUMBERS, found
    long = "void f() {\n" + "\n" * LINES_OF_FUNCTION + "}\n"
    wide = "class C {\n" + "int a;\n" * (DATA_MEMBERS + 1) + "virtual void f();\n" * (VIRTUALS + 1) + "};\n"
    deep = "class D {\nstruct Inner {\n" + "int a;\n" * 10 + "};\nclass Other {\n" + "int b;\n" * 10 + "};\nint c;\n};\n"
    assert len(list(problems_of("long.cpp", long + wide + deep + "\n" * LINES_OF_FILE))) == 5


def main():
    check_scanner()
    source = pathlib.Path(sys.argv[1])
    files = [path for folder in FOLDERS for path in sorted((source / folder).rglob("*")) if path.suffix in HOST | DEVICE]
    problems = []
    for path in files:
        file, text = path.relative_to(source).as_posix(), path.read_text()
        if "--all" in sys.argv:
            for kind, name, line, numbers in parts_of(text):
                print(kind, file, line, *numbers, name)
        problems += problems_of(file, text)
    print("\n".join(problems) or f"functions, classes and files are small in all {len(files)} sources")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
