"""The configuration of Sphinx for the site of the documents. scripts/docs_site.sh builds it; the sources are what stage.py has laid out."""
import os
import pathlib
import re

from docutils import nodes
from docutils.utils.math import latex2mathml

_SOURCE = pathlib.Path(os.environ["FEDBITS_SOURCE"])

project = "fedbits"
author = "fedbits contributors"
release = re.search(r"project\(fedbits VERSION ([0-9.]+)", (_SOURCE / "CMakeLists.txt").read_text()).group(1)
html_title = f"fedbits {release}"

extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 6  # anchors as GitHub makes them
highlight_language = "none"
smartquotes = False  # quotation marks and hyphens stay as they are typed
suppress_warnings = ["misc.highlighting_failure"]  # excerpts need not be whole files

html_theme = "furo"
html_static_path = [str(pathlib.Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_math_renderer = "mathml"


def _mathml(self, node, as_block):
    """Writes a formula as MathML, whose bars keep the height of a letter."""
    self.body.append(latex2mathml.tex2mathml(node.astext(), as_block=as_block).replace("<mo>‖</mo>", '<mo stretchy="false">‖</mo>'))
    raise nodes.SkipNode


def _inline_math(self, node):
    _mathml(self, node, as_block=False)


def _block_math(self, node):
    _mathml(self, node, as_block=True)


def setup(app):
    """Lets the browser draw formulas, so that no page needs a script for them."""
    app.add_html_math_renderer("mathml", (_inline_math, None), (_block_math, None))
