"""How `make docs` builds the manual: Sphinx over the same Markdown files that one reads in the repository."""

project = "DPAL"
author = "The DPAL maintainers"
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
templates_path = ["_templates"]
html_title = "DPAL"
# Pages load nothing from another host, like the site itself.
html_show_sphinx = False
myst_heading_anchors = 4
# Files of the repository that the manual points at, such as a test, are read there.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure", "image.not_readable"]
