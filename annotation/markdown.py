"""Markdown as part of a page: by an allow-list of forms, and no HTML but what is made here."""

from collections.abc import Sequence
from typing import ClassVar

from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

DEEPEST = 6


class PageRenderer(RendererHTML):
    """Put headings below the page's own, and what may be wide where it can be scrolled by keys."""

    # What a table stands in; a landmark needs a name that no other on the page has.
    scrolled: ClassVar[str] = "region"

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        env["above"] = tokens[idx + 1].content
        return f"<{self._level(tokens[idx])}{self.renderAttrs(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"</{self._level(tokens[idx])}>\n"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        part = Token("part", "div", 1, attrs={"class": "scroll", "tabindex": "0", "role": self.scrolled})
        part.attrSet("aria-label", env.get("above", ""))
        return f"<div{self.renderAttrs(part)}><table>\n"

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        code = Token("text", "", 0, content=tokens[idx].content)
        return f'<pre class="example" tabindex="0"><code>{self.text([code], 0, options, env)}</code></pre>\n'

    @staticmethod
    def _level(token: Token) -> str:
        return f"h{min(DEEPEST, int(token.tag[1:]) + 1)}"
