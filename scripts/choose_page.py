#!/usr/bin/env python3
"""Writes docs/choose.md: which compressor and which error feedback to take for a network, a model and a kind of clients. Needs nothing but Python.

    python3 scripts/choose_page.py              writes the page
    python3 scripts/choose_page.py --check      compares the page with what would be written; exit code 1 if it differs
    python3 scripts/choose_page.py --root DIR   the same in another tree

Every figure and every ranking comes from the exports in research/absolute-compressors, from docs/compressors.md, from the sources of the feedbacks, or from
bench/results. The texts around them are written here and in scripts/choose_answers.py and scripts/choose_sections.py."""
import argparse
import pathlib
import sys

import studies_path  # noqa: F401, before the modules that read the studies
import choose_answers as answers
import choose_evidence as evidence
import choose_facts as facts
import choose_sections as sections
from choose_words import Evidence

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = pathlib.Path("docs") / "choose.md"


def gathered(root):
    """Reads everything that the page rests on."""
    parts, first = facts.parts_in(root), evidence.FirstStudy(root, "5")
    return Evidence(
        root=root, first=first, small=evidence.FirstStudy(root, "1"), core=evidence.SecondStudy(root, "core-5"),
        second_parts=evidence.parts_of_second(root), both=evidence.pair_ratios(root, first, "both"), published=evidence.published(root),
        perceptron=evidence.Networks(root, "network-core"), cnn=evidence.Networks(root, "cifar-core"),
        powersgd=evidence.Networks(root, "descriptive-powersgd"), low_rank=evidence.Networks(root, "network-low-rank"),
        images=evidence.images(root), parts=parts, unbiased=facts.unbiased_in(parts), times=facts.break_even(root), hooks=facts.hooks(root))


def page(root):
    """Returns the text of the page."""
    found = gathered(root)
    return "\n\n".join([answers.opening(), answers.answers(found), sections.decided(found), sections.convex(found), sections.tuned_alike(found),
                        sections.untuned(found), sections.networks(found), answers.layers(found), answers.memoryless(found), answers.directions(found),
                        answers.local_network(found), answers.unknown(found)]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    arguments = parser.parse_args()
    path, text = arguments.root.resolve() / PAGE, page(arguments.root.resolve())
    if not arguments.check:
        path.write_text(text)
        return 0
    if path.exists() and path.read_text() == text:
        return 0
    print(f"{PAGE} is not what `python3 scripts/choose_page.py` writes", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
