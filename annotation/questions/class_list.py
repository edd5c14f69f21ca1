"""The classes of a project as annotators look them up: each with a short code to type and what belongs to it."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from string import ascii_lowercase

from annotation.choices.classes import MOST_KEYED, NO_LOOK, Look
from dpal.reading.labels import class_key, split_line

QUOTED = re.compile(r'["“”„«»](.+)["“”«»]')
ALTERNATIVES = re.compile(r"\{([^{}|]*)\|[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Listed:
    """A class as annotators look it up; `code` is its own key, else two letters or more to type."""

    value: int
    name: str
    code: str
    words: tuple[str, ...]
    look: Look = NO_LOOK
    examples: tuple[str, ...] = ()

    @property
    def description_lines(self) -> tuple[str, ...]:
        return (*self.words, *(f"“{example}”" for example in self.examples))


def is_many(names: Sequence[str]) -> bool:
    return len(names) > MOST_KEYED


@lru_cache(maxsize=256)
def listed_classes(
    names: tuple[str, ...], descriptions: tuple[str, ...], looks: tuple[Look, ...] = ()
) -> tuple[Listed, ...]:
    said: dict[str, list[str]] = {}
    examples: dict[str, list[str]] = {}
    keys = {class_key(name): class_key(name) for name in names}
    for line in descriptions:
        key, written = split_line(line, keys)
        words = ALTERNATIVES.sub(r"\1", written)
        quoted = QUOTED.fullmatch(words)
        if words and key is not None:
            found = said if quoted is None else examples
            found.setdefault(key, []).append(words if quoted is None else quoted[1].strip())
    shown = looks or (NO_LOOK,) * len(names)
    codes = [look.key or code for look, code in zip(shown, codes_of(names), strict=True)] if is_many(names) else None
    return tuple(
        Listed(value, name, code, tuple(said.get(key, ())), look, tuple(examples.get(key, ())))
        for value, (name, code, look) in enumerate(zip(names, codes or [""] * len(names), shown, strict=True))
        for key in (class_key(name),)
    )


def codes_of(names: Sequence[str]) -> list[str]:
    taken: set[str] = set()
    codes = []
    for name in names:
        code = next(code for code in _wanted(name) if code not in taken)
        taken.add(code)
        codes.append(code)
    return codes


def _wanted(name: str) -> Iterator[str]:
    words = _words(name)
    letters = "".join(words)
    initials = "".join(word[0] for word in words)
    yield from (initials[0] + other for other in initials[1:])
    if len(letters) > 1:
        yield letters[:2]
    yield from _pairs(letters)
    for length in range(2, 99):
        yield from map("".join, product(ascii_lowercase, repeat=length))


def _pairs(letters: str) -> Iterable[str]:
    # In the order of the first letter, which people try first.
    return (first + second for first, second in combinations(letters, 2))


def _words(name: str) -> list[str]:
    signs = (sign for sign in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(sign))
    # No number is a letter, of whatever script: 1 to 9 answer.
    return "".join(sign if sign.isalpha() else " " for sign in signs).split()
