#!/usr/bin/env python3
"""Builds the site of the documents: every page is there, its links lead to pages and headings, a browser loads nothing from the network, and the search
finds a word in the site's folder. A link that leads nowhere fails the build.

usage: docs_site_test.py SOURCE BUILD      the tools of the site lie in BUILD/docs-environment
"""
import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

SOURCE, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
TAG = re.compile(r"<(script|link|img|source|iframe|a)\b([^>]*)>")
ADDRESS = re.compile(r"\b(?:src|href|srcset)=\"([^\"]*)\"")
failed = []


def build(source, out):
    environment = {**os.environ, "FEDBITS_DOCS_ENV": str(BUILD / "docs-environment")}
    result = subprocess.run([source / "scripts" / "docs_site.sh", out], env=environment, capture_output=True, text=True)
    if result.returncode == 3:
        if pypi_is_there():
            sys.exit(f"FAILED: {result.stderr}")
        print(f"PYPI MISSING: {result.stderr.strip().splitlines()[-1]}; the site of the documents was NOT BUILT")
        sys.exit(77)
    return result


def pypi_is_there():
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--retries", "1", "--dest", folder, "furo"]
        return subprocess.run(command, capture_output=True).returncode == 0


def check_addresses(site):
    """Follows every link of every page; returns how many there are."""
    pages = {path: path.read_text() for path in site.rglob("*.html")}
    names = {path: set(re.findall(r"\bid=\"([^\"]+)\"", text)) for path, text in pages.items()}
    tried = set()
    for page, text in pages.items():
        for tag, attributes in TAG.findall(text):
            for address in ADDRESS.findall(attributes):
                tried.add((page, tag, html.unescape(address)))
    for page, tag, address in tried:
        place = f"{page.relative_to(site)}: {address}"
        if re.match(r"[a-z][a-z0-9+.-]*:|//", address):
            if tag != "a":
                failed.append(f"{place}: a browser loads this from the network")
            continue
        name, _, anchor = urllib.parse.unquote(address.partition("?")[0]).partition("#")
        target = page if name == "" else pathlib.Path(os.path.normpath(page.parent / name))
        if not target.is_file():
            failed.append(f"{place}: there is no such file")
        elif anchor and target in names and anchor not in names[target]:
            failed.append(f"{place}: there is no such heading")
    for style in site.rglob("*.css"):
        if re.search(r"url\([\"']?(?:https?:)?//|@import", style.read_text()):
            failed.append(f"{style.relative_to(site)} loads something from the network")
    return len(tried)


def check_pages(site):
    """Looks for the page of each document."""
    for page in sorted((SOURCE / "docs").rglob("*.md")):
        if not (site / page.relative_to(SOURCE)).with_suffix(".html").is_file():
            failed.append(f"{page.relative_to(SOURCE)} has no page")
    for name, words in (("docs/architecture.html", "<div class=\"sequence\">"), ("docs/notebooks/heterogeneity.html", "<math")):
        if words not in (site / name).read_text():
            failed.append(f"{name} has no {words}")


def check_search(site):
    """Asks a browser for a word, in files and without a network."""
    browser = shutil.which("chromium")
    if browser is None:
        print("TOOL MISSING: chromium; the search was NOT TRIED")
        return
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--virtual-time-budget=20000", "--dump-dom"]
        page = subprocess.run([*command, f"file://{site}/search.html?q=dirichlet_client"], capture_output=True, text=True, timeout=120).stdout
    if not re.search(r"<a href=\"docs/scenario-reference.html[^>]*>Scenario reference</a>", page):
        failed.append("the search does not find dirichlet_client in the scenario reference")


def check_faults(work):
    """Builds two pages with a link that leads nowhere."""
    shutil.copytree(SOURCE / "scripts" / "docs_site", work / "scripts" / "docs_site")
    shutil.copy(SOURCE / "scripts" / "docs_site.sh", work / "scripts")
    (work / "docs").mkdir()
    (work / "CMakeLists.txt").write_text("project(fedbits VERSION 1.0.0 LANGUAGES CXX)\n")
    (work / "README.md").write_text("# Read me\n\n[a page](docs/page.md#a-heading)\n")
    for name in ("page", "more", "decisions/0001"):
        (work / "docs" / name).parent.mkdir(exist_ok=True)
        (work / "docs" / f"{name}.md").write_text("# Page\n\n## A heading\n")
    whole = build(work, work / "site")
    if whole.returncode != 0:
        failed.append(f"a site without faults is refused: {whole.stderr}")
    for link, said in (("more.md#another", "another"), ("nowhere.md", "nowhere.md: there is no such file")):
        (work / "docs" / "page.md").write_text(f"# Page\n\n## A heading\n\n[more]({link})\n")
        result = build(work, work / "site")
        if result.returncode == 0 or said not in result.stderr or "docs/page.md" not in result.stderr:
            failed.append(f"a link to {link} is not refused: {result.stderr}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder) / "site"
        result = build(SOURCE, site)
        if result.returncode != 0:
            sys.exit(f"FAILED: {result.stdout}{result.stderr}")
        links = check_addresses(site)
        check_pages(site)
        check_search(site)
        check_faults(pathlib.Path(folder) / "faults")
    if links < 1000:
        failed.append("too few links were found")
    for line in failed:
        print(f"FAILED: {line}")
    print(f"{links} links were followed, {len(failed)} checks failed")
    sys.exit(1 if failed else 0)


main()
