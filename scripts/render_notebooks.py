#!/usr/bin/env python3
"""Runs the notebooks of examples/notebooks and writes them with their figures as pages of the documents.

    PYTHON scripts/render_notebooks.py [NAME...]        writes docs/notebooks/NAME.md and its figures; by default all

PYTHON has fedbits, what the notebooks import, nbclient and ipykernel installed. Progress bars and cells with the tag "large-output" leave no output.
"""
import base64
import pathlib
import sys
import tempfile

import nbclient
import nbformat

TOP = pathlib.Path(__file__).resolve().parents[1]
SOURCES, PAGES = TOP / "examples" / "notebooks", TOP / "docs" / "notebooks"
MOST_LINES = 40  # of a text output
WIDE_TABLES = """
try:
    import pandas
    pandas.options.display.width = 150
except ImportError:
    pass
"""


def run(path: pathlib.Path) -> nbformat.NotebookNode:
    book = nbformat.read(path, as_version=4)
    book.cells.insert(0, nbformat.v4.new_code_cell(WIDE_TABLES))
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(book, timeout=1200, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    del book.cells[0]
    return book


def output_text(output: nbformat.NotebookNode, name: str, figures: list[bytes]) -> str:
    """Returns an output in Markdown, and adds its figure to the list. Standard error, where progress is shown, has no output."""
    data = output.get("data", {})
    if "image/png" in data:
        figures.append(base64.b64decode(data["image/png"]))
        return f"![Figure {len(figures)}]({name}-{len(figures)}.png)\n"
    text = output.text if output.output_type == "stream" and output.name == "stdout" else data.get("text/plain", "")
    lines = text.rstrip().splitlines()
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], "..."]
    return "".join(f"    {line}".rstrip() + "\n" for line in lines)


def page_of(book: nbformat.NotebookNode, name: str) -> tuple[str, list[bytes]]:
    parts, figures = [], []
    for cell in book.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source + "\n")
            continue
        parts.append(f"```python\n{cell.source}\n```\n")
        if "large-output" not in cell.metadata.get("tags", []):
            parts += filter(None, (output_text(output, name, figures) for output in cell.outputs))
    note = f"[The notebook](../../examples/notebooks/{name}.ipynb) makes this page; scripts/render_notebooks.py runs it.\n"
    return "\n".join([*parts, note]), figures


def main(names: list[str]) -> None:
    PAGES.mkdir(exist_ok=True)
    for path in sorted(SOURCES.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        page, figures = page_of(run(path), path.stem)
        for old in PAGES.glob(f"{path.stem}-*.png"):
            old.unlink()
        for number, figure in enumerate(figures, 1):
            (PAGES / f"{path.stem}-{number}.png").write_bytes(figure)
        (PAGES / f"{path.stem}.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
