"""Model cards as pages show them: the signed file, which is in English."""

from markdown_it import MarkdownIt

from annotation.markdown import PageRenderer

FORMS = ("backticks", "emphasis", "escape", "fence", "heading", "list", "table")
FENCE = "---\n"


def card_html(card: str) -> str:
    """Return a card as HTML whose text is escaped, without its front matter and title."""
    body = card.split(f"\n{FENCE}", 1)[-1].lstrip("\n") if card.startswith(FENCE) else card
    reader = MarkdownIt("zero", {"html": False}, renderer_cls=PageRenderer).enable(list(FORMS))
    tokens = reader.parse(body)
    titled = bool(tokens) and tokens[0].type == "heading_open" and tokens[0].tag == "h1"
    return str(reader.renderer.render(tokens[3:] if titled else tokens, reader.options, {}))
