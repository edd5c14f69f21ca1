"""Spans of a text as character offsets, and as one tag for each of its first tokens."""

import json
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dpal.features.normal import APOSTROPHES

# Tokens of a text that are labelled and learnt from.
MAX_TOKENS = 32
# Tag of a token that is in no span; the tag of a span is the place of its type among the types, plus one.
OUTSIDE = 0


@dataclass(frozen=True, order=True)
class Span:
    """Characters `start` to `end` (excluded) of a text, code points as Python counts them, and their type."""

    start: int
    end: int
    type: str


def tokens(text: str) -> list[tuple[int, int]]:
    """Return where the words of a text begin and end, all of them.

    Words are cut as by the rule L1, in which texts are counted: at white space and punctuation, but at no apostrophe.
    """
    found: list[tuple[int, int]] = []
    start = end = -1
    for place, character in enumerate(text):
        part = _part(character)
        if part == "word":
            start, end = (place if start < 0 else start), place + 1
        elif part == "between":
            if start >= 0:
                found.append((start, end))
            start = -1
    if start >= 0:
        found.append((start, end))
    return found


@lru_cache(4096)
def _part(character: str) -> str:
    category = unicodedata.category(character)
    if character in APOSTROPHES or (category in ("Cc", "Cf") and not character.isspace()):
        return "nothing"
    return "between" if character.isspace() or category.startswith("P") else "word"


def canonical(spans: Iterable[Span], *, text: str) -> tuple[Span, ...]:
    """Return the spans of a text in their order; equal sets of spans are equal tuples.

    Raises
    ------
    ValueError
        If a span is empty, reaches beyond the text, begins or ends with white space, or overlaps another. The message
        names offsets, never text.
    """
    ordered = tuple(sorted(set(spans)))
    end = 0
    for span in ordered:
        if span.start < 0 or span.end > len(text):
            raise ValueError(f"span {span.start}-{span.end} must lie within the text of {len(text)} characters")
        if span.start >= span.end:
            raise ValueError(f"span {span.start}-{span.end} is empty")
        if text[span.start].isspace() or text[span.end - 1].isspace():
            raise ValueError(f"span {span.start}-{span.end} begins or ends with white space")
        if span.start < end:
            raise ValueError(f"span {span.start}-{span.end} overlaps the one before it, which ends at {end}")
        end = span.end
    return ordered


def tags(text: str, spans: Iterable[Span], types: Sequence[str]) -> list[int]:
    """Return a tag for each of the first `MAX_TOKENS` tokens: that of the first span that has a part of it.

    `ValueError` if spans are refused by `canonical` or have another type.
    """
    numbers = {name: number + 1 for number, name in enumerate(types)}
    ordered = canonical(spans, text=text)
    if unknown := {span.type for span in ordered} - set(numbers):
        raise ValueError(f"span types must be among {sorted(numbers)}, got {sorted(unknown)}")
    found = []
    for start, end in tokens(text)[:MAX_TOKENS]:
        covering = (numbers[span.type] for span in ordered if span.start < end and span.end > start)
        found.append(next(covering, OUTSIDE))
    return found


def spans_of(text: str, tagged: Sequence[int], types: Sequence[str]) -> tuple[Span, ...]:
    """Return the spans of tags: neighbouring tokens of one type are one span."""
    found: list[Span] = []
    before = OUTSIDE
    for (start, end), tag in zip(tokens(text), tagged, strict=False):
        if tag != OUTSIDE and tag == before:
            found[-1] = Span(found[-1].start, end, found[-1].type)
        elif tag != OUTSIDE:
            found.append(Span(start, end, types[tag - 1]))
        before = tag
    return tuple(found)


def cut(text: str) -> int | None:
    """Return the character at which the last token that is labelled ends; None if all tokens are."""
    found = tokens(text)
    return found[MAX_TOKENS - 1][1] if len(found) > MAX_TOKENS else None


def beyond_cut(text: str, spans: Iterable[Span]) -> bool:
    """True where a span reaches beyond the tokens that are labelled."""
    last = cut(text)
    return last is not None and any(span.end > last for span in spans)


def written(spans: Iterable[Span]) -> str:
    """Return spans in the one form in which they are stored: JSON, `[[start, end, type], ...]`."""
    listed = [[span.start, span.end, span.type] for span in sorted(spans)]
    return json.dumps(listed, ensure_ascii=False, separators=(",", ":"))


def read(stored: str) -> tuple[Span, ...]:
    """Return the spans that `written` was given; `ValueError` if it is of another form."""
    body: Any = json.loads(stored)
    if not isinstance(body, list) or not all(isinstance(one, list) and len(one) == 3 for one in body):
        raise ValueError("spans must be a list of [start, end, type]")
    if not all(type(start) is type(end) is int and isinstance(name, str) for start, end, name in body):
        raise ValueError("spans must have whole numbers for offsets and text for types")
    return tuple(Span(start, end, name) for start, end, name in body)
