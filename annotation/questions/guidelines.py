"""Guidelines as pages show them: Markdown with the project's own pictures."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from annotation.errors import InvalidConfiguration
from annotation.markdown import PageRenderer
from annotation.models import Guidelines, Project
from privacy.wording import as_message

FORMS = (
    "backticks",
    "blockquote",
    "emphasis",
    "escape",
    "fence",
    "heading",
    "hr",
    "image",
    "list",
    "newline",
    "strikethrough",
    "table",
)
# In which direction each of these is read is for its own words to say.
DIRECTED = frozenset({"heading_open", "paragraph_open", "blockquote_open", "list_item_open", "td_open", "th_open"})
LINE_ENDS = frozenset({"softbreak", "hardbreak"})
KEPT_TEXTS = 64
# A picture is called by the beginning of its digest, which no two of a project share by chance.
NAME_LENGTH = 16
SCHEME = "picture:"
# What would be more than a letter between the brackets.
ACTIVE = re.compile(r"([\\\[\]*_`~!<>])")
ESCAPED = r"\\\1"
NAMED = re.compile(rf"{SCHEME}([0-9a-f]{{{NAME_LENGTH}}})")


@dataclass(frozen=True, slots=True)
class ShownPicture:
    name: str
    url: str
    width: int
    height: int


class GuidelinesRenderer(PageRenderer):
    scrolled = "group"

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Show a picture of the project; of any other only the description."""
        said = self.renderInlineAsText(tokens[idx].children, options, env)
        shown = env["pictures"].get(_name_in(tokens[idx]))
        if shown is None:
            return escapeHtml(said)
        sides = {"width": str(shown.width), "height": str(shown.height), "loading": "lazy"}
        made = Token("image", "img", 0, attrs={"src": shown.url, "alt": said, **sides})
        return f"<img{self.renderAttrs(made)}>"


@lru_cache(maxsize=KEPT_TEXTS)
def guidelines_html(text: str, label: str, pictures: tuple[ShownPicture, ...] = ()) -> SafeString:
    reader = _reader()
    tokens = reader.parse(text)
    for token in tokens:
        if token.type in DIRECTED:
            token.attrSet("dir", "auto")
    env = {"above": label, "pictures": {picture.name: picture for picture in pictures}}
    # Nothing in it was written by anybody but the renderer, which escapes the rest.
    return mark_safe(str(reader.renderer.render(tokens, reader.options, env)))  # noqa: S308


def refuse_pictures_of_others(text: str, known: Collection[str] | None) -> None:
    """Refuse pictures that are not among `known` or have no description; None checks names only."""
    for line, image in _images(text):
        name = _name_in(image)
        if name is None:
            raise InvalidConfiguration(
                as_message(
                    "Line {line}: add the picture under Pictures and use the line given there.",
                    line=line,
                )
            )
        if known is not None and name not in known:
            raise InvalidConfiguration(
                as_message("Line {line}: add the picture under Pictures and use the line given there.", line=line)
            )
        if not image.content.strip():
            raise InvalidConfiguration(
                as_message(
                    "Line {line}: describe the picture between the brackets.",
                    line=line,
                )
            )


def pictures_in(text: str) -> set[str]:
    return {name for _line, image in _images(text) if (name := _name_in(image)) is not None}


def snippet_of(name: str, description: str) -> str:
    return f"![{ACTIVE.sub(ESCAPED, description)}]({SCHEME}{name})"


def _reader() -> MarkdownIt:
    return MarkdownIt("zero", {"html": False, "breaks": True}, renderer_cls=GuidelinesRenderer).enable(list(FORMS))


def _name_in(image: Token) -> str | None:
    named = NAMED.fullmatch(str(image.attrGet("src") or ""))
    return None if named is None else named[1]


def _images(text: str) -> Iterator[tuple[int, Token]]:
    first = 0
    for token in _reader().parse(text):
        first = token.map[0] if token.map else first
        line = first + 1
        for child in token.children or ():
            line += child.type in LINE_ENDS
            if child.type == "image":
                yield line, child


def current_guidelines(project: Project) -> Guidelines:
    stored = Guidelines.objects.filter(project=project, version=project.guidelines_version).first()
    return stored or Guidelines(
        project=project, version=project.guidelines_version, text=project.guidelines, author_id=project.created_by_id
    )


def picture_names(project: Project) -> set[str]:
    return {digest[:NAME_LENGTH] for digest in project.guideline_pictures.values_list("digest", flat=True)}


def guidelines_context(project: Project, *, view: str, shown: Guidelines | None = None) -> dict[str, Any]:
    shown = shown or current_guidelines(project)
    wanted = pictures_in(shown.text)
    kept = project.guideline_pictures.order_by("pk") if wanted else ()
    pictures = tuple(
        ShownPicture(one.digest[:NAME_LENGTH], reverse(view, args=(project.slug, one.digest)), one.width, one.height)
        for one in kept
        if one.digest[:NAME_LENGTH] in wanted
    )
    return {
        "guidelines": shown,
        "guidelines_shown": guidelines_html(shown.text, _("Guidelines"), pictures),
        "examples": [example | {"class": project.classes[example["choice"]]} for example in shown.examples],
    }
