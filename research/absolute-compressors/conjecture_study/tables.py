"""The long tables of the study, on a page of their own: first/tables.md.

The primary tables of H1 to H3 and short ones stay where they are. In the place of a table that moves, the study's page has a link to it."""
import re

# The parts of first/page.md whose long tables move: what their headings begin with there, and the rows of the longest table that stays.
MOVED = {"mixed": ("Mixed model", 11), "secondary": ("Rounds and total error", 11), "curves": ("Whole curves", 11), "both": ("Bits up and down", 11),
         "second": ("Budget of 1%", 11), "robustness": ("", 0), "networks": ("", 11)}
# What a table shows, by a title of one of its columns.
KINDS = {"difference of slopes": "differences between feedbacks", "contrast": "contrasts", "slope": "slopes"}
# What has to be said beside a table that moves.
NOTES = {"both": "Step sizes, thresholds and grid steps were tuned for uplink bits, and runs end by them. Nothing was tuned for bits in both directions."}
MOST_DIFFERENT = "the most different clients"
TABLE = re.compile(r"^\|.*(?:\n\|.*)*", re.MULTILINE)


def kind_of(header):
    titles = [title.strip() for title in header.strip("|").split("|")]
    if any(title.startswith("log ratio at") or title.startswith("difference at") for title in titles):
        return MOST_DIFFERENT
    return next((kind for title, kind in KINDS.items() if title in titles), "")


def stays(table, longest):
    header, _, *rows = table.splitlines()
    return len(rows) <= longest or "| factor |" in header


def anchor_of(title):
    """Returns the anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def separated(parts):
    """Returns the parts without their long tables, and the text of the page of tables."""
    kept, sections = dict(parts), []

    def move(name, content):
        heading, longest = MOVED[name]

        def moved(match):
            nonlocal heading
            text = match[0]
            if text.startswith("#"):
                heading = text.lstrip("# ")
            if not text.startswith("|") or stays(text, longest):
                return text
            title = ": ".join(filter(None, [heading, kind_of(text.splitlines()[0])]))
            sections.append("\n\n".join([f"## {title}", *([NOTES[name]] if name in NOTES else []), text]))
            return f"Tables: [{title}](tables.md#{anchor_of(title)})."

        linked = re.sub(f"^###.*|{TABLE.pattern}", moved, content, flags=re.MULTILINE)
        return re.sub(r"(\(tables\.md#[^)]*\))\.\n\nTables: ", r"\1,\n", linked)

    for name in MOVED:
        kept[name] = move(name, parts[name])
    return kept, "\n\n".join(sections)
