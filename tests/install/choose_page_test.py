#!/usr/bin/env python3
"""docs/choose.md is what its script writes from the exports. Changes that are planted in the page, in an export, in a feedback's source and in a table of
times are noticed, and the page says of the second study only what its plan allows. Needs nothing but Python.

    choose_page_test.py SOURCE"""
import contextlib
import csv
import io
import lzma
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "scripts"))
import studies_path  # noqa: F401, before the modules that read the studies
import choose_answers
import choose_evidence
import choose_facts
import choose_sections
import conjecture
import fair_study

PART = "repetitions of `core-5` have run. The plan decides nothing before all of them have"
RESULTS = conjecture.FOLDER / "results"
FAIR = fair_study.FOLDER / "results"


@contextlib.contextmanager
def tree():
    """Yields a copy of everything that the script reads."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for folder in (conjecture.FOLDER, fair_study.FOLDER):
            shutil.copytree(SOURCE / folder, root / folder, ignore=shutil.ignore_patterns("*.svg"))
        (root / "docs").mkdir()
        shutil.copytree(SOURCE / "compressors" / "feedback", root / "compressors" / "feedback")
        for page in ("compressors.md", "choose.md"):
            shutil.copy(SOURCE / "docs" / page, root / "docs" / page)
        shutil.copytree(SOURCE / "bench" / "results", root / "bench" / "results")
        yield root


def check(root):
    """Returns the exit code and the message of the script's --check."""
    words = [sys.executable, "-B", str(SOURCE / "scripts" / "choose_page.py"), "--check", "--root", str(root)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def rewrite(path, change):
    """Rewrites the lines of a compressed table: change(line) edits a dictionary."""
    lines = list(csv.DictReader(io.StringIO(lzma.decompress(path.read_bytes()).decode())))
    for line in lines:
        change(line)
    text = io.StringIO()
    table = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(lines)
    path.write_bytes(lzma.compress(text.getvalue().encode(), preset=0))


def planted(path, old, new):
    text = path.read_text()
    assert old in text, (path, old)
    path.write_text(text.replace(old, new, 1))


def check_committed():
    code, said = check(SOURCE)
    assert code == 0, said
    text = (SOURCE / "docs" / "choose.md").read_text()
    parts = choose_facts.parts_in(SOURCE)
    named = set(re.findall(r"\(compressors\.md#(\w+)\)", text))
    assert len(named) > 10 and named <= set(parts), named - set(parts)
    print(f"docs/choose.md is what its script writes, and names {len(named)} parts that exist")


def check_planted_page():
    """A changed figure of the page fails, and so does a page that is missing."""
    with tree() as root:
        page = root / "docs" / "choose.md"
        figure = re.search(r"measured: (\d\.\d\d) \(", page.read_text())[1]
        planted(page, figure, f"{float(figure) + 0.01:.2f}")
        assert check(root) == (1, "docs/choose.md is not what `python3 scripts/choose_page.py` writes\n"), check(root)
        page.unlink()
        assert check(root)[0] == 1
    print(f"a changed figure ({figure}) and a missing page are noticed")


def check_planted_export():
    """An operator whose gaps are made a thousand times as large is no longer named first, and a diverged run excludes its method."""
    def spoil(line):
        if line["compressor.up"] == "rounding":
            line["f_gap"] = str(1000 * float(line["f_gap"]))

    with tree() as root:
        before = choose_evidence.FirstStudy(root, "5")
        chosen = {case: choose_sections.choice_in(before, case) for case in choose_sections.CASES}
        assert {operator for _, operator in chosen.values()} == {"rounding"}, chosen
        for block in ("a9a-5-steps-1", "a9a-5-steps-10", "w8a-5-steps-1", "w8a-5-steps-10"):
            rewrite(root / RESULTS / block / "runs.csv.xz", spoil)
        after = choose_evidence.FirstStudy(root, "5")
        assert "rounding" not in {choose_sections.choice_in(after, case)[1] for case in choose_sections.CASES}
        rows = [" ".join(row) for row in choose_answers.convex_rows(after)]
        assert not any("absolute_rounding" in row for row in rows), rows
        shutil.copytree(SOURCE / RESULTS / "a9a-5-steps-1", root / RESULTS / "a9a-5-steps-1", dirs_exist_ok=True)
        seeds = []

        def diverge(line):
            if line["compressor.up"] == "hard" and line["feedback.up"] == "ef14" and line["partition.percent"] == "0" and not seeds:
                line["status"] = "diverged"
                seeds.append(line["seed"])

        rewrite(root / RESULTS / "a9a-5-steps-1" / "runs.csv.xz", diverge)
        lost = choose_evidence.FirstStudy(root, "5")
        assert [lost.ratio(at, ("ef14", "hard")) for at in lost.settings(problem="a9a", steps="1", level="0")].count(None) == 1
        shutil.rmtree(root / RESULTS / "w8a-5-steps-10")
        code, said = check(root)
        assert code == 1 and "the first study has no exports of w8a-5-steps-10" in said, said
    print("changed exports change what is named first; a block that is missing is an error")


def check_second_study():
    """The page claims nothing of a part of the second study, and has the tests of the plan once it is whole."""
    with tree() as root:
        for path in (root / FAIR).glob("core-5-*.xz"):
            path.unlink()
        assert "No repetition of `core-5` has been exported" in second_text(root)
        for number in range(1, 6):
            for table in ("runs", "differences"):
                shutil.copy(SOURCE / FAIR / f"core-5-{1 + number % 2}-{table}.csv.xz", root / FAIR / f"core-5-{number}-{table}.csv.xz")
            text = second_text(root)
            is_whole = number == 5
            assert (f"**{number} of 5 {PART}" in text) != is_whole, text
            assert ("By the tests of the plan" in text) == ("All 5 repetitions of `core-5` have run" in text) == is_whole, text
            assert ("Intervals are over" in text) == (number > 1), text
            assert "no choice on this page rests on them" in text or is_whole
    print("the second study is described until it is whole")


def second_text(root):
    """Returns the section about the second study without the line breaks of its paragraphs."""
    found = Found(root)
    return " ".join(choose_sections.tuned_alike(found).split())


class Found:
    """The evidence of the section about the second study; that of the first one is read once."""
    first = choose_evidence.FirstStudy(SOURCE, "5")

    def __init__(self, root):
        self.core, self.second_parts, self.images = choose_evidence.SecondStudy(root, "core-5"), choose_evidence.parts_of_second(root), choose_evidence.images(root)


def check_images():
    """The part on images is shown with its state."""
    lines = ["measure,bits,a,b,level,seed,zeta_sq,difference"]
    for level, gain in (("100", 0.01), ("0.1", 0.05)):
        lines += [f"test_accuracy,up,hard,top-k,{level},{seed},1.0,{gain + seed / 1000}" for seed in range(5)]
    with tree() as root:
        for number in range(1, 4):
            for table, text in (("differences", "\n".join(lines)), ("runs", "run,status\n1,done\n")):
                (root / FAIR / f"images-{number}-{table}.csv.xz").write_bytes(lzma.compress(text.encode()))
            # Another repetition has other values.
            lines = [line.replace("0.05", "0.06") for line in lines]
            text = choose_sections.images_text(Found(root))
            assert ("hard threshold against Top-k, alpha = 0.1" in text) == (number > 1), text
            assert ("nothing is decided" in text) == (number == 2), text
    print("the part on images is shown with its state")


def check_planted_facts():
    """A slot at the clients and a table that has gone are noticed."""
    with tree() as root:
        parts = choose_facts.parts_in(root)
        assert not choose_facts.keeps_state(root, parts["fedpaq"]) and choose_facts.keeps_state(root, parts["ef14"])
        planted(root / "compressors" / "feedback" / "memoryless.hpp", "FeedbackPlan plan() const override", "SlotOwner::client; FeedbackPlan plan() const override")
        assert choose_facts.keeps_state(root, parts["fedpaq"])
        code, said = check(root)
        assert code == 1 and "is not what" in said, said
        planted(root / "bench" / "results" / "python.md", "| hook | bits a step |", "| hook |")
        code, said = check(root)
        assert code == 1 and "bench/results/python.md has no table whose header begins with `hook | bits a step`" in said, said
    print("changed facts are noticed")


check_committed()
check_planted_page()
check_planted_export()
check_second_study()
check_images()
check_planted_facts()
