"""Puts the scripts of research/absolute-compressors on Python's path. The scripts that write docs/choose.md import this before those of the studies."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "research" / "absolute-compressors"))
