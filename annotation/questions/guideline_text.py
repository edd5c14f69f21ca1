"""What annotators are told, as part of a page: Markdown by an allow-list of forms."""

from functools import lru_cache

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from annotation.markdown import PageRenderer

FORMS = (
    "backticks",
    "blockquote",
    "emphasis",
    "escape",
    "fence",
    "heading",
    "hr",
    "list",
    "newline",
    "strikethrough",
    "table",
)
# In which direction each of these is read is for its own words to say.
DIRECTED = frozenset({"heading_open", "paragraph_open", "blockquote_open", "list_item_open", "td_open", "th_open"})
KEPT_TEXTS = 64


class GuidelinesRenderer(PageRenderer):
    """Guidelines stand beside other parts of a page, so what scrolls in them is no landmark."""

    scrolled = "group"


@lru_cache(maxsize=KEPT_TEXTS)
def guidelines_html(text: str, label: str) -> SafeString:
    """Return guidelines as HTML; the end of a line stays one, and HTML, links and addresses are shown as written.

    `label` is what somebody who listens is told of a table with no heading above it.
    """
    reader = MarkdownIt("zero", {"html": False, "breaks": True}, renderer_cls=GuidelinesRenderer).enable(list(FORMS))
    tokens = reader.parse(text)
    for token in tokens:
        if token.type in DIRECTED:
            token.attrSet("dir", "auto")
    # Nothing in it was written by anybody but the renderer, which escapes the rest.
    return mark_safe(str(reader.renderer.render(tokens, reader.options, {"above": label})))  # noqa: S308
