"""The model card as part of a page: its Markdown by an allow-list of forms, and no HTML but what is made here."""

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

FORMS = ("backticks", "escape", "fence", "heading", "list", "table")
FENCE = "---\n"
DEEPEST = 6


class CardRenderer(RendererHTML):
    """Put headings below the page's own, and what may be wide where it can be scrolled by keys."""

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Open a heading a level further down: the page has a title of its own."""
        env["above"] = tokens[idx + 1].content
        return f"<{self._level(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Close it at the same level."""
        return f"</{self._level(tokens[idx])}>\n"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Open a table in a region called after the heading above it."""
        region = Token("region", "div", 1, attrs={"class": "scroll", "tabindex": "0", "role": "region"})
        region.attrSet("aria-label", env.get("above", ""))
        return f"<div{self.renderAttrs(region)}><table>\n"

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Close table and region."""
        return "</table></div>\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Write code as this site shows examples."""
        code = Token("text", "", 0, content=tokens[idx].content)
        return f'<pre class="example" tabindex="0"><code>{self.text([code], 0, options, env)}</code></pre>\n'

    @staticmethod
    def _level(token: Token) -> str:
        return f"h{min(DEEPEST, int(token.tag[1:]) + 1)}"


def card_html(card: str) -> str:
    """Return the HTML of a card without its front matter and its title, which the page has already.

    Parameters
    ----------
    card : str
        Markdown as `learner.releases.model_card.render_card` writes it. Whatever else it holds (HTML, links, pictures)
        comes out as the characters it is written with.
    """
    if card.startswith(FENCE):
        card = card.split(f"\n{FENCE}", 1)[-1]
    reader = MarkdownIt("zero", {"html": False}, renderer_cls=CardRenderer).enable(list(FORMS))
    tokens = reader.parse(card)
    titled = bool(tokens) and tokens[0].type == "heading_open" and tokens[0].tag == "h1"
    return str(reader.renderer.render(tokens[3:] if titled else tokens, reader.options, {}))
