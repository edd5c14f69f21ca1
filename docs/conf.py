"""How `make docs` builds the manual: Sphinx over the same Markdown files that one reads in the repository."""

from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

project = "DPAL"
author = "The DPAL maintainers"
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
templates_path = ["_templates"]
html_title = "DPAL"
# Pages load nothing from another host, like the site itself.
html_show_sphinx = False
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# Files of the repository that the manual points at, such as a test, are read there; that they exist is checked by
# `tests/test_manuals.py`.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure", "image.not_readable"]


def write_formula(writer: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers show by themselves."""
    writer.body.append(tex2mathml(node.astext(), as_block=node.tagname == "math_block"))
    raise SkipNode


def setup(app: Any) -> None:
    """Make Sphinx know the renderer, in place of the one that fetches a script from another host."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
