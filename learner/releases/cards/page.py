"""The model card as part of a page: its Markdown by an allow-list of forms, and no HTML but what is made here."""

from markdown_it import MarkdownIt

from annotation.markdown import PageRenderer

FORMS = ("backticks", "escape", "fence", "heading", "list", "table")
FENCE = "---\n"


def without_front_matter(card: str) -> str:
    """Return what a card says to people, as Markdown."""
    return card.split(f"\n{FENCE}", 1)[-1].lstrip("\n") if card.startswith(FENCE) else card


def card_html(card: str) -> str:
    """Return the HTML of a card without its front matter and its title, which the page has already.

    Parameters
    ----------
    card : str
        Markdown of `learner.releases.cards.rendering.render_card`; HTML, links and pictures in it are escaped.
    """
    reader = MarkdownIt("zero", {"html": False}, renderer_cls=PageRenderer).enable(list(FORMS))
    tokens = reader.parse(without_front_matter(card))
    titled = bool(tokens) and tokens[0].type == "heading_open" and tokens[0].tag == "h1"
    return str(reader.renderer.render(tokens[3:] if titled else tokens, reader.options, {}))
