"""How `make docs` builds the manual: Sphinx over the same Markdown files that one reads in the repository."""

import re
from pathlib import Path
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
# A link that leads nowhere is a warning, which fails the build.
suppress_warnings = ["misc.highlighting_failure"]

TO_A_MANUAL = re.compile(r"\]\((?=\.\.?/)([^)#\s]+\.md)")


def keep_files_of_the_repository(app: Any, page: str, source: list[str]) -> None:
    """Take along what stands beside the manual's folder, such as `SECURITY.md`, where a page links to it."""
    folder = Path(app.srcdir, page).parent

    def address(link: re.Match[str]) -> str:
        inside = (folder / link[1]).resolve().is_relative_to(app.srcdir)
        return link[0] if inside else f"](path:{link[1]}"

    source[0] = TO_A_MANUAL.sub(address, source[0])


def write_formula(writer: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers show by themselves."""
    writer.body.append(tex2mathml(node.astext(), as_block=node.tagname == "math_block"))
    raise SkipNode


def setup(app: Any) -> None:
    """Make Sphinx know both; its own way with formulas fetches a script from another host."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("source-read", keep_files_of_the_repository)
