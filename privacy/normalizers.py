"""Fixed, versioned rules that bring texts to the form in which they are counted and shown.

A rule never changes once it has a name: two texts fall into one group today exactly if they did
when the first ledger entry was written. A better rule gets a new name.
"""

import unicodedata
from enum import StrEnum
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


class Normalizer(StrEnum):
    """The rules that exist.

    L0: Unicode NFC, white space collapsed, invisible characters removed.
    L1: L0 with compatibility forms unified (NFKC), case folded, apostrophes dropped and every
    other punctuation character read as a space.
    """

    L0 = "L0"
    L1 = "L1"


APOSTROPHES = "'’ʼ"
# Casing and composing can each bring back something the other would change.
MAX_PASSES = 4


def normalize_text(text: str, normalizer: Normalizer) -> str:
    """Apply one rule to one text; the reference that `normalize_texts` must equal."""
    table = TRANSLATIONS[normalizer]
    for _ in range(MAX_PASSES):
        before = text
        if normalizer is Normalizer.L1:
            text = unicodedata.normalize("NFKC", text).casefold()
        text = unicodedata.normalize("NFC", text).translate(table)
        text = " ".join(text.split())
        if text == before:
            break
    return text


def normalize_texts(texts: pa.Array, normalizer: Normalizer) -> pa.Array:
    """Apply one rule to a whole array.

    Parameters
    ----------
    texts : pyarrow.Array of string or large_string, length n
        Null stays null.
    normalizer : Normalizer
        The rule.

    Returns
    -------
    pyarrow.Array of large_string, length n
        Equal, text by text, to `normalize_text`.
    """
    texts = texts.cast(pa.large_string())
    if len(texts) == 0:
        return texts
    plain = pc.fill_null(pc.string_is_ascii(texts), True)
    if pc.all(plain).as_py():
        return _normalize_ascii(texts, normalizer)
    # Python's own tables decide about everything beyond ASCII, so no second Unicode database
    # can disagree with the reference.
    wide = [normalize_text(text, normalizer) for text in texts.filter(pc.invert(plain)).to_pylist()]
    easy = _normalize_ascii(pc.if_else(plain, texts, ""), normalizer)
    return pc.replace_with_mask(easy, pc.invert(plain), pa.array(wide, pa.large_string()))


class _Translation(dict[int, str | int | None]):
    """Character table of a rule for `str.translate`, filled as characters turn up."""

    def __init__(self, normalizer: Normalizer) -> None:
        self.words_only = normalizer is Normalizer.L1

    def __missing__(self, code: int) -> str | int | None:
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


TRANSLATIONS = {normalizer: _Translation(normalizer) for normalizer in Normalizer}


@cache
def _ascii_table(normalizer: Normalizer) -> NDArray[np.uint8]:
    """Byte table of a rule over ASCII: 0 removes, a space separates."""
    table = np.arange(256, dtype=np.uint8)
    for code in range(128):
        folded = chr(code).casefold() if normalizer is Normalizer.L1 else chr(code)
        # A byte that goes becomes 0, which no rule keeps.
        table[code] = ord(folded.translate(TRANSLATIONS[normalizer]) or "\0")
    return table


def _normalize_ascii(texts: pa.Array, normalizer: Normalizer) -> pa.Array:
    """Normalise ASCII texts through their bytes, all texts at once."""
    if texts.offset:
        texts = pa.concat_arrays([texts.slice(0, 0), texts])
    validity, offset_buffer, data = texts.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64, count=len(texts) + 1)
    first, last = int(offsets[0]), int(offsets[-1])
    if data is None or first == last:
        return texts
    raw = np.frombuffer(data, dtype=np.uint8, count=last - first, offset=first)
    characters = _ascii_table(normalizer)[raw]
    starts = offsets - first
    characters, starts = _keep(characters, starts, characters != 0)
    if characters.size:
        space = characters == ord(" ")
        # A space goes if a space or the start of its text comes before it, ...
        after_space = np.empty_like(space)
        after_space[1:] = space[:-1]
        after_space[starts[:-1][starts[:-1] < characters.size]] = True
        characters, starts = _keep(characters, starts, ~(space & after_space))
    if characters.size:
        # ... and then at most one is left at the end of a text.
        ends = starts[1:][starts[1:] > starts[:-1]] - 1
        keep = np.ones(characters.size, dtype=np.bool_)
        keep[ends[characters[ends] == ord(" ")]] = False
        characters, starts = _keep(characters, starts, keep)
    buffers = [validity, pa.py_buffer(starts.tobytes()), pa.py_buffer(characters.tobytes())]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers, null_count=texts.null_count)


def _keep(
    characters: NDArray[np.uint8], starts: NDArray[np.int64], keep: NDArray[np.bool_]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Drop characters and move the text boundaries accordingly."""
    if keep.all():
        return characters, starts
    kept_before = np.zeros(keep.size + 1, dtype=np.int64)
    np.cumsum(keep, out=kept_before[1:])
    return characters[keep], kept_before[starts]
