"""What conjecture.py does: the exports, tables, figures and pages of the study of first/plan.md.

Its figures, and those of the second study, are drawn with scripts/svg_charts.py, so that folder is put on Python's path here."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
