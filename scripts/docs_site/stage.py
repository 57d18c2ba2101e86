#!/usr/bin/env python3
"""Lays out the pages that the site is built from: the Markdown of the repository at the paths that it has there, and a page for each other file or
folder that a page links to.

usage: stage.py SOURCE STAGED

README.md becomes index.md and gets the list of all pages. A link to a text file leads to a page that shows it, a link to a folder to its README or
to a page that lists it, and other files are offered as downloads. Mermaid sequence diagrams become pictures. A link that leads nowhere is an error.
"""
import fnmatch
import os
import pathlib
import re
import shutil
import sys

import sequence

STUDIES = "research/absolute-compressors"
# The navigation, in this order; pages that it does not name follow under "More".
GROUPS = {
    "Start": ["docs/tutorial", "docs/gallery", "docs/choose", "docs/troubleshooting", "docs/coming-from", "docs/notebooks/*"],
    "Studies": ["docs/studies", "docs/statistics", "docs/library-studies", "docs/scenario-reference", "docs/compressors", "docs/data", "docs/neural-clients", "docs/results", "docs/status"],
    "Python": ["docs/python", "docs/python-simulator", "docs/python-reference"],
    "Server and clients": ["docs/protocol", "docs/security"],
    "Your own parts": ["docs/plugins", "docs/how-to-*"],
    "Inside": ["docs/architecture", "docs/tour", "docs/maths", "docs/benchmarks", "bench/results/index", "docs/gpu", "docs/decisions/index"],
    "Conjecture": ["docs/conjecture", f"{STUDIES}/README", f"{STUDIES}/second/plan", f"{STUDIES}/first/page", f"{STUDIES}/*"],
    "Folders": ["*/README"],
    "Project": ["CHANGELOG", "CONTRIBUTING", "SECURITY", "docs/releasing"],
}
# Folders whose pages have one entry in the navigation: a page that lists them.
LISTS = {"docs/decisions": ("Decisions", "Why things are designed as they are: the context of a choice, its consequence, and what would change our mind."),
         "bench/results": ("Measurements", "All tables of measured speed, with their machines, dates and commands.")}
TITLES = {"docs/security": "Security", "SECURITY": "Reporting vulnerabilities"}  # shorter in the navigation than the page's heading
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".cu": "cpp", ".py": "python", ".toml": "toml", ".sh": "bash", ".cff": "yaml", ".csv": "text", ".proto": "protobuf"}
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')  # of a heading that has moved, for links from elsewhere
LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=(?:\s+\"[^\"]*\")?\))")
EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:|//|#")


def toctree(entries, *options):
    return "\n".join(["```{toctree}", *(options or [":titlesonly:"]), "", *entries, "```", "", ""])


def is_page(path):
    return path.suffix == ".md" and not any(part.startswith((".", "build")) for part in path.parts)


class Stage:
    def __init__(self, source, staged):
        self.source, self.staged, self.failed = source, staged, []
        found = {path.relative_to(source) for pattern in ("*.md", "docs/**/*.md", "bench/results/*.md", "research/**/*.md", "*/README.md", "scenarios/**/README.md") for path in source.glob(pattern)}
        self.pages = sorted(path for path in found if is_page(path))
        self.anchors = {path: set(ANCHOR.findall((source / path).read_text())) for path in self.pages}
        self.shown = set()  # files and folders that have got a page of their own

    def write(self, name, text):
        path = self.staged / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def page_of(self, path):
        """Returns the staged file that a link to this path of the repository leads to; makes its page if it has none."""
        if path == pathlib.Path("README.md"):
            return pathlib.Path("index.md")
        if path in self.pages:
            return path
        if (self.source / path).is_dir():
            return self.page_of(path / "README.md") if path / "README.md" in self.pages else self.page_of_folder(path)
        return self.page_of_file(path)

    def page_of_file(self, path):
        file = self.source / path
        if path.suffix not in LANGUAGES:
            (self.staged / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, self.staged / path)
            return path
        name = path.with_name(path.name + ".md")
        if path not in self.shown:
            self.shown.add(path)
            text = file.read_text()
            fence = "`" * (3 + max(map(len, re.findall(r"`{3,}", text)), default=0))
            self.write(name, f"---\norphan: true\nnosearch: true\n---\n# {path}\n\n{fence}{LANGUAGES[path.suffix]}\n{text.rstrip()}\n{fence}\n")
        return name

    def page_of_folder(self, path):
        name = path / "index.md"
        if path not in self.shown and path.as_posix() not in LISTS:
            self.shown.add(path)
            lines = [f"---\norphan: true\nnosearch: true\n---\n# {path}/\n"]
            for child in sorted(self.source.joinpath(path).iterdir()):
                if child.is_file() and not child.name.startswith("."):
                    target = self.page_of(child.relative_to(self.source))
                    lines.append(f"- [{self.title_of(child)}]({os.path.relpath(target, path)})")
            self.write(name, "\n".join(lines) + "\n")
        return name

    def title_of(self, file):
        heading = re.search(r"^# (.+)$", file.read_text(), re.MULTILINE) if file.suffix == ".md" else None
        return heading.group(1) if heading else file.name

    def target_of(self, page, target):
        """Returns what a link of a page leads to in the site, relative to the page."""
        if EXTERNAL.match(target):
            return target
        name, _, anchor = target.partition("#")
        path = pathlib.Path(os.path.normpath(page.parent / name))
        if path.parts[0] == ".." or not (self.source / path).exists():
            self.failed.append(f"{page}: {target}: there is no such file in the repository")
            return target
        if anchor in self.anchors.get(path, ()):
            return f"#{anchor}"  # a target of the whole site
        staged = os.path.relpath(self.page_of(path), page.parent)
        return f"{staged}#{anchor}" if anchor else staged

    def with_links(self, page, text):
        """Returns the text with the links of its prose led to pages of the site."""
        lines, fence, before = [], None, ""
        for line in text.splitlines():
            mark = re.match(r" {0,3}(```+|~~~+)", line)
            is_indented = line.startswith("    ") and before.strip() == ""
            if fence is not None:
                fence = None if mark and line.strip().startswith(fence) else fence
            elif mark:
                fence = mark.group(1)
            elif not is_indented:
                code = [match.span() for match in re.finditer(r"(`+)(?:(?!\1).)+?\1", line)]
                line = LINK.sub(
                    lambda link: link.group() if any(begin <= link.start() < end for begin, end in code) else self.target_of(page, link.group()), line
                )
            lines.append(line)
            before = "" if is_indented else line
        return "\n".join(lines) + "\n"

    def with_diagrams(self, page, text):
        return re.sub(r"^```mermaid\n(.*?)^```$", lambda match: sequence.picture(match.group(1), str(page)), text, flags=re.DOTALL | re.MULTILINE)

    def navigation(self):
        """Returns the lists of pages for the end of index.md, one for each group; writes the pages that list others."""
        left, text = [path.with_suffix("").as_posix() for path in self.pages if path != pathlib.Path("README.md")], ""
        for folder, (title, about) in LISTS.items():
            below = [name for name in left if name.startswith(f"{folder}/")]
            self.write(f"{folder}/index.md", f"# {title}\n\n{about}\n\n" + toctree([name.removeprefix(f"{folder}/") for name in below]))
            left = [f"{folder}/index"] + [name for name in left if name not in below]
        for group, patterns in [*GROUPS.items(), ("More", ["*"])]:
            chosen = []
            for pattern in patterns:
                chosen += [name for name in left if fnmatch.fnmatchcase(name, pattern) and name not in chosen]
            left = [name for name in left if name not in chosen]
            if chosen:
                text += toctree([f"{TITLES[name]} <{name}>" if name in TITLES else name for name in chosen], ":hidden:", f":caption: {group}")
        return text

    def run(self):
        for page in self.pages:
            text = self.with_diagrams(page, self.with_links(page, (self.source / page).read_text()))
            text = ANCHOR.sub(lambda anchor: f"({anchor[1]})=\n", text)
            if page.as_posix() == "README.md":
                self.write("index.md", text + "\n" + self.navigation())
            else:
                self.write(page, text)
        if self.failed:
            sys.exit("\n".join(f"FAILED: {line}" for line in self.failed))
        print(f"{len(self.pages)} pages, and {len(self.shown)} for files and folders that they link to")


if __name__ == "__main__":
    shutil.rmtree(sys.argv[2], ignore_errors=True)
    Stage(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()).run()
