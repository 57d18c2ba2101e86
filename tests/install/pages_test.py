"""What stands in the pages of the checkout: every relative link leads to a file and, where it names one, to a heading of it; the pictures of
the gallery are what the script draws; signatures on the how-to pages (blocks of "c++") are those of the headers; every decision states its
status; the citation file agrees with CMakeLists.txt and LICENSE; forms for issues and CHANGELOG.md have their form; git ignores the files that
the commands of the first pages write. Needs Python and git.

    python3 tests/install/pages_test.py SOURCE
    python3 tests/install/pages_test.py --links FOLDER      links alone, of the pages of any folder
"""
import filecmp
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[-1]).resolve()
LINK = re.compile(r"(?<!\\)!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
IMAGE = re.compile(r"<(?:img|a|source)\b[^>]*?\b(?:src|href|srcset)=\"([^\"]+)\"")
failed = []


def prose(text):
    """Returns the text without fenced blocks, indented code and spans of code; a line stays a line."""
    kept, fence, before = [], None, ""
    for line in text.splitlines():
        mark = re.match(r" {0,3}(```+|~~~+)", line)
        if fence is None and mark:
            fence = mark.group(1)
            kept.append("")
        elif fence is not None:
            fence = None if mark and line.strip().startswith(fence) else fence
            kept.append("")
        elif line.startswith("    ") and before.strip() == "":
            kept.append("")  # an indented block begins after an empty line, and goes on like one
            continue
        else:
            kept.append(re.sub(r"(`+)(?:(?!\1).)+?\1", "", line))
        before = line
    return "\n".join(kept)


def anchors(page):
    """Returns the anchors of a page's headings as GitHub makes them: lower case, no punctuation, hyphens for spaces, -1 for a second one."""
    found, fenced = {}, False
    for line in page.read_text().splitlines():
        if re.match(r" {0,3}(```|~~~)", line):
            fenced = not fenced
        heading = re.match(r"#{1,6} +(.*?) *#*$", line)
        if heading is None or fenced:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1))
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        times = found.get(anchor, 0)
        found[anchor] = times + 1
        if times:
            found[f"{anchor}-{times}"] = 1
    return set(found) | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", page.read_text()))


def check_links(pages):
    """Tries every relative link; returns how many there are."""
    tried = 0
    for page in pages:
        for number, line in enumerate(prose(page.read_text()).splitlines(), 1):
            for target in LINK.findall(line) + IMAGE.findall(line):
                if re.match(r"[a-z][a-z0-9+.-]*:|//", target):
                    continue
                tried += 1
                name, _, anchor = target.partition("#")
                file = page if name == "" else (page.parent / name).resolve()
                place = f"{page.relative_to(SOURCE)}:{number}: {target}"
                if not file.exists() or SOURCE not in [file, *file.parents]:
                    failed.append(f"{place}: there is no such file in the checkout")
                elif anchor and (file.suffix != ".md" or anchor not in anchors(file)):
                    failed.append(f"{place}: {file.relative_to(SOURCE)} has no heading of that name")
    return tried


def check_gallery():
    """Draws the gallery anew; returns the number of pictures."""
    committed = SOURCE / "docs" / "gallery"
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([sys.executable, "-B", str(SOURCE / "scripts" / "gallery.py"), "draw", "--out", out], check=True)
        drawn = sorted(path.name for path in pathlib.Path(out).iterdir())
        for name in drawn:
            if not (committed / name).exists() or not filecmp.cmp(committed / name, pathlib.Path(out) / name, shallow=False):
                failed.append(f"docs/gallery/{name} is not what the script draws: python3 scripts/gallery.py draw")
        shown = re.findall(r"\]\((?:gallery/)([a-z_]+\.svg)\)", "".join((SOURCE / "docs" / page).read_text() for page in ("gallery.md", "tutorial.md")))
        for name in sorted({path.name for path in committed.glob("*.svg")} ^ set(drawn)) + sorted(set(shown) ^ set(drawn)):
            failed.append(f"docs/gallery/{name}: drawn, committed and shown pictures differ")
        for data in committed.glob("*.csv"):
            if data.stat().st_size > 12_000:
                failed.append(f"{data.relative_to(SOURCE)} is larger than the few kilobytes that a picture needs")
        return len(drawn)


def plain(code):
    """Returns code without comments and attributes, with single spaces."""
    code = re.sub(r"//[^\n]*", "", code)
    code = re.sub(r"\b(FL_API|FL_HD|inline)\s|\[\[nodiscard\]\]\s", "", code)
    return re.sub(r"\s+", " ", code).strip()


def check_signatures():
    """Looks for every line of the blocks of "c++" in the public headers; returns how many there are."""
    folders = (*sorted(path.relative_to(SOURCE).as_posix() for path in (SOURCE / "fl_core").iterdir() if path.is_dir()), "fl_core/ops/cpu", "compressors", "compressors/support", "clients/learning", "clients/nn", "clients/cuda")
    headers = plain("\n".join(path.read_text() for folder in folders for path in sorted((SOURCE / folder).glob("*.hpp"))))
    tried = 0
    for page in sorted((SOURCE / "docs").glob("how-to-*.md")):
        for block in re.findall(r"^```c\+\+\n(.*?)^```", page.read_text(), re.S | re.M):
            for line in block.splitlines():
                tried += 1
                if plain(line).rstrip(";") not in headers:
                    failed.append(f"{page.relative_to(SOURCE)}: no header has {line!r}")
    return tried


def check_decisions():
    """Looks for the number, the status and, of a superseded decision, the later one on each page of decisions; returns how many there are."""
    pages = sorted((SOURCE / "docs" / "decisions").glob("*.md"))
    for page in pages:
        number, text = int(page.name[:4]), page.read_text()
        head = re.match(rf"# {number}\. .+\n\n\*\*Status:\*\* (accepted\b|superseded by \[decision (\d+)\])", text)
        if head is None or (head.group(2) and int(head.group(2)) <= number):
            failed.append(f"{page.relative_to(SOURCE)}: begins with no '# {number}. TITLE' and '**Status:** accepted' or 'superseded by [decision N]'")
    return len(pages)


def check_citation():
    """Compares the citation file with the version of the project and its licence; parses it where PyYAML is there."""
    text = (SOURCE / "CITATION.cff").read_text()
    version = re.search(r"project\(fedbits VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)
    if f"\nversion: {version}\n" not in text:
        failed.append(f"CITATION.cff: the version is not {version}, that of CMakeLists.txt")
    if "Apache License" not in (SOURCE / "LICENSE").read_text() or "\nlicense: Apache-2.0\n" not in text:
        failed.append("CITATION.cff: the licence is not that of LICENSE")
    try:
        import yaml
    except ImportError:
        return
    fields = yaml.safe_load(text)
    for key in ("cff-version", "message", "title", "authors"):
        if not fields.get(key):
            failed.append(f"CITATION.cff: {key} is missing, which the format requires")
    if not all(reference.get("authors") and reference.get("title") and reference.get("type") for reference in fields["references"]):
        failed.append("CITATION.cff: a reference without authors, title or type")


def check_changelog():
    """The newest section is that of the project's version or of the next one, and a bullet has at most two lines of 150 characters."""
    lines = (SOURCE / "CHANGELOG.md").read_text().splitlines()
    version = re.search(r"project\(fedbits VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)
    sections = [line for line in lines if line.startswith("## ")]
    if not any(re.match(rf"## {re.escape(version)} \((unreleased|\d{{4}}-\d\d-\d\d)\)$", line) for line in sections[:2]):
        failed.append(f"CHANGELOG.md: neither of the newest two sections is that of version {version}, with its date or (unreleased)")
    for number, line in enumerate(lines, 1):
        if len(line) > 150 or (line.startswith("  ") and not lines[number - 2].startswith("- ")):
            failed.append(f"CHANGELOG.md:{number}: a bullet has more than two lines of 150 characters")


def check_forms():
    """Parses the forms for issues where PyYAML is there; a host shows none that lacks a field."""
    try:
        import yaml
    except ImportError:
        return
    for form in sorted((SOURCE / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        fields, place = yaml.safe_load(form.read_text()), form.relative_to(SOURCE)
        names = [field["id"] for field in fields["body"] if field["type"] != "markdown"]
        if not (fields.get("name") and fields.get("description")) or len(names) != len(set(names)):
            failed.append(f"{place}: the name or the description is missing, or two fields have one id")
        failed.extend(f"{place}: a field without a label" for field in fields["body"] if field["type"] != "markdown" and not field["attributes"].get("label"))


def check_ignored():
    """Asks git about each file that a command of the first pages writes into the clone; returns how many there are."""
    names = ("README.md", "docs/studies.md", "docs/library-studies.md", "docs/protocol.md", "docs/python.md", "docs/python-simulator.md")
    text = "".join((SOURCE / name).read_text() for name in names)
    written = re.findall(r"[Ss]ave this as `([^`]+)`", text) + re.findall(r"\.save\(\"([^\"]+)\"\)", text)
    for name in re.findall(r" (?:--out|-o|--rounds|--runs) ([\w./-]+)", text):
        written.append(name if "." in name else f"{name}/results.sqlite")
    written += [f"{name}/file" for name in re.findall(r"(?m)^ {4}.*-m venv (\S+)", text)]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "--quiet", folder], check=True)
        shutil.copy(SOURCE / ".gitignore", folder)
        for name in sorted(set(written)):
            (pathlib.Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (pathlib.Path(folder) / name).touch()
        left = subprocess.run(["git", "-C", folder, "status", "--short", "--untracked-files=all"], check=True, capture_output=True, text=True).stdout
    for line in left.splitlines():
        if line != "?? .gitignore":
            failed.append(f".gitignore does not cover {line[3:]}, which a command of the first pages writes")
    return len(set(written))


pages = sorted(path for path in SOURCE.rglob("*.md") if not any(part.startswith((".", "build")) for part in path.relative_to(SOURCE).parts))
links = check_links(pages)
said = f"{links} links on {len(pages)} pages"
if "--links" not in sys.argv:
    pictures, signatures = check_gallery(), check_signatures()
    decisions = check_decisions()
    check_citation()
    check_forms()
    check_changelog()
    written = check_ignored()
    said += f", {pictures} pictures, {signatures} signatures, {decisions} decisions and {written} files that git ignores"
    if pictures < 5 or signatures < 40 or decisions < 20 or written < 8:
        failed.append("too few pictures, signatures, decisions or files were found")
if links < 20:
    failed.append("too few links were found")
for line in failed:
    print(f"FAILED: {line}")
print(f"{said} were tried, {len(failed)} failed")
sys.exit(1 if failed else 0)
