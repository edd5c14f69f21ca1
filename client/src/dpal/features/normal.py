"""Texts to the words in which a project counts them: the rules L0 to L5 of a site, by Python's Unicode tables."""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from dpal.errors import NotFitting, NotGenuine

# Stands between texts, which hold none: every rule removes it.
END = "\0"
APOSTROPHES = "'’ʼ"
DIGIT = re.compile(r"\d")
# Casing and composing can each bring back something the other would change.
MAX_PASSES = 4
RULES = ("L0", "L1", "L2", "L3", "L4", "L5")


@dataclass(frozen=True)
class WordLists:
    masks: Mapping[str, str]
    number: str
    other: str
    function_words: frozenset[str]
    common_words: frozenset[str]

    @classmethod
    def read(cls, path: Path) -> "WordLists":
        body = json.loads(path.read_text(encoding="utf-8"))
        if body.get("schema") != "dpal-words/1":
            raise NotGenuine("words.json is of a form that this version of dpal-client does not know.")
        return cls(
            body["masks"],
            body["number"],
            body["other"],
            frozenset(body["function_words"]),
            frozenset(body["common_words"]),
        )

    def rule(self, name: str) -> Callable[[str], str]:
        """Return what a rule makes of one word; an empty text where it goes."""
        slots = {self.number, self.other, *self.masks.values()}

        def masked(word: str) -> str:
            return self.number if DIGIT.search(word) else self.masks.get(word, word)

        def content(word: str) -> str:
            return "" if word in self.function_words else masked(word)

        def general(word: str) -> str:
            left = content(word)
            return left if not left or left in slots or left in self.common_words else self.other

        def listed(word: str) -> str:
            left = general(word)
            return "" if left == self.other else left

        return {"L2": masked, "L3": content, "L4": general, "L5": listed}[name]


class Words:
    """One rule, L0 to L5, applied to many texts; the rules from L2 on need the lists."""

    def __init__(self, rule: str, lists: WordLists | None = None) -> None:
        if rule not in RULES:
            raise NotGenuine(f"The rule {rule!r} for texts is unknown to this version of dpal-client.")
        if lists is None and rule not in ("L0", "L1"):
            raise NotGenuine(f"The rule {rule} reads word lists, and the release brings none.")
        self.rule = rule
        self._characters = "L0" if rule == "L0" else "L1"
        self._ascii = _ascii_table(self._characters)
        self._gone = bytes(code for code in range(1, 128) if self._ascii[code] == 0)
        self._word = None if lists is None or rule in ("L0", "L1") else lru_cache(200_000)(lists.rule(rule))
        self._number = lists.number if lists else ""

    @classmethod
    def from_release(cls, rule: str, files: Mapping[str, Path]) -> "Words":
        return cls(rule, WordLists.read(files["words.json"]) if "words.json" in files else None)

    def flat(self, texts: Sequence[str | None]) -> list[bytes]:
        r"""Return the words of all texts one after the other, each text ended by ``b"\0"``."""
        # ASCII goes through one table for all texts; what is beyond is brought to a form that the table leaves alone.
        plain = [text if text.isascii() else self._normal(text) for text in map(checked, texts)]
        together = END.join(plain)
        if together.count(END) != len(plain) - 1:
            together = END.join(text.replace(END, "") for text in plain)
        raw = together.encode("utf-8", "surrogatepass").translate(self._ascii, self._gone)
        words = raw.replace(b"\0", b" \0 ").split()
        words.append(b"\0")
        return words if self._word is None else self._ruled(words)

    def _ruled(self, words: list[bytes]) -> list[bytes]:
        assert self._word is not None
        found: list[bytes] = []
        text: list[str] = []
        for word in words:
            if word != b"\0":
                text.append(self._word(word.decode("utf-8", "surrogatepass")))
                continue
            if self.rule == "L2":
                # Numbers in a row are one.
                kept = [one for place, one in enumerate(text) if not (place and one == text[place - 1] == self._number)]
            else:
                kept = sorted(set(text) - {""})
            found += [one.encode("utf-8", "surrogatepass") for one in kept]
            found.append(b"\0")
            text = []
        return found

    def _normal(self, text: str) -> str:
        table = TRANSLATIONS[self._characters]
        for _ in range(MAX_PASSES):
            before = text
            if self._characters == "L1":
                text = unicodedata.normalize("NFKC", text).casefold()
            text = " ".join(unicodedata.normalize("NFC", text).translate(table).split())
            if text == before:
                break
        return text


def checked(text: object) -> str:
    """Return a text; None and what a data frame puts for it count as an empty one."""
    if isinstance(text, str):
        return text
    if text is None or (isinstance(text, float) and text != text):
        return ""
    raise NotFitting(f"This model reads texts, got {type(text).__name__}.")


class _Translation(dict[int, "str | int | None"]):
    def __init__(self, rule: str) -> None:
        self.words_only = rule == "L1"

    def __missing__(self, code: int) -> "str | int | None":
        character = chr(code)
        category = unicodedata.category(character)
        kept: str | int | None = code
        if character.isspace():
            kept = " "
        elif category in {"Cc", "Cf"} or (self.words_only and character in APOSTROPHES):
            kept = None
        elif self.words_only and category.startswith("P"):
            kept = " "
        self[code] = kept
        return kept


TRANSLATIONS = {rule: _Translation(rule) for rule in ("L0", "L1")}


def _ascii_table(rule: str) -> bytes:
    table = bytearray(range(256))
    for code in range(128):
        folded = chr(code).casefold() if rule == "L1" else chr(code)
        table[code] = ord(folded.translate(TRANSLATIONS[rule]) or END)
    return bytes(table)
