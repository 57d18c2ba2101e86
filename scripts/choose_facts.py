"""What scripts/choose_page.py knows of operators and feedbacks without a run: docs/compressors.md, which `fedbits list` fills, the lists of slots in the
sources, and the measured times of bench/results. Needs nothing but Python."""
import re
import typing


class Part(typing.NamedTuple):
    """A compressor or a feedback: its group on the page, its listed facts by their names, and its source file."""
    group: str
    facts: dict
    file: str


def parts_in(root):
    """Returns {name: Part} of docs/compressors.md."""
    parts, group = {}, ""
    for title in re.split(r"^(?=##+ )", (root / "docs" / "compressors.md").read_text(), flags=re.MULTILINE):
        heading, _, text = title.partition("\n")
        if heading.startswith("## "):
            group = heading.removeprefix("## ")
        elif heading.startswith("### "):
            facts = dict(re.findall(r"^- ([^:\n]+): (.*)$", text, re.MULTILINE))
            parts[heading.removeprefix("### ")] = Part(group, facts, re.search(r"^File: (\S+)$", text, re.MULTILINE)[1])
    return parts


def fact(part, begin):
    """Returns the fact whose name begins so, "" if the part has none."""
    return next((value for name, value in part.facts.items() if name.startswith(begin)), "")


def feedbacks(parts):
    return {name: part for name, part in parts.items() if part.group == "Feedbacks"}


def keeps_state(root, part):
    """Returns whether a feedback has a slot at each client: one in the list of slots of its file, or of a header of compressors/feedback that it includes."""
    text = (root / part.file).read_text()
    shared = re.findall(r'#include "(compressors/feedback/(?!feedback|needs|theory)\w+\.hpp)"', text)
    return any("SlotOwner::client" in one for one in (text, *((root / name).read_text() for name in shared)))


class Unbiased(typing.NamedTuple):
    """An unbiased operator with its default options on 1,000 parameters: its variance factor omega and the bits of its message."""
    name: str
    omega: float
    bits: int
    is_approximate: bool  # a small bias remains

    @property
    def cost(self):
        return (1 + self.omega) * self.bits


def unbiased_in(parts):
    """Returns the unbiased operators with a single message, the cheapest first: (1 + omega) times the bits."""
    found = []
    for name, part in parts.items():
        omega = re.search(r"unbiased, omega = ([0-9.e+-]+)", fact(part, "bound on its error"))
        bits = re.search(r"(\d+) bits$", fact(part, "its message"))
        if omega and bits:
            found.append(Unbiased(name, float(omega[1]), int(bits[1]), "unbiased up to" in fact(part, "bound on its error")))
    return sorted(found, key=lambda one: (one.cost, one.name))


def measured_table(root, page, first_cell):
    """Returns the rows of the first table of a page of bench/results whose header begins with a cell, each as a list of cells."""
    text = (root / "bench" / "results" / page).read_text()
    table = re.search(rf"^\| {re.escape(first_cell)} \|.*\n\|[-| ]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    if not table:
        raise ValueError(f"bench/results/{page} has no table whose header begins with `{first_cell}`")
    return [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in table[1].splitlines()]


ENTRIES = 10_000_000  # of the vector in the table of operators, 32 bits each


def break_even(root):
    """Returns {operator: (milliseconds for the vector, Gbit/s of a link that carries the uncompressed vector in that time)}."""
    rows = measured_table(root, "operators.md", "operator | time")
    times = {row[0]: float(row[1].removesuffix(" ms")) for row in rows}
    return {name: (time, 32 * ENTRIES / (time * 1e-3) / 1e9) for name, time in times.items()}


def hooks(root):
    """Returns {hook: (ratio at 1 Gbit/s, ratio at 100 Mbit/s)} of the step of DistributedDataParallel without a hook."""
    rows = measured_table(root, "python.md", "hook | bits a step")
    return {row[0]: tuple(float(cell.rsplit(", ", 1)[1]) for cell in row[-2:]) for row in rows}
