"""Rules for a cell that becomes a stored text or the name of a contributor."""

import math
import re
import unicodedata
from decimal import Decimal
from typing import Any

from dpal.wording import as_message

MAXIMUM_TEXT_LENGTH = 20_000
EMPTY = as_message("is empty")
TOO_LONG = as_message("is longer than {most:,} characters", most=MAXIMUM_TEXT_LENGTH)
NOT_TEXT = as_message("is not text")
NOT_UTF8 = as_message("is not valid in the file's encoding (UTF-8 by default); choose another, or save as UTF-8")
HALF = as_message("holds half of a character (cut inside an emoji)")
NUL = as_message("holds a NUL character")


BROKEN = re.compile("[\ud800-\udc7f\udd00-\udfff]")


class BadCell(ValueError):
    """A cell breaks a rule; the message is the reason and holds nothing of the cell."""


def all_texts_pass(cells: list[Any]) -> bool:
    """Say whether every cell is a text that may be stored; the whole batch at once, because nearly all batches are."""
    try:
        joined = "".join(cells)
        joined.encode()
    except (TypeError, UnicodeEncodeError):
        return False
    return "\0" not in joined and max(map(len, cells), default=0) <= MAXIMUM_TEXT_LENGTH and all(map(str.strip, cells))


def read_text(cell: Any) -> str:
    if cell is None:
        raise BadCell(EMPTY)
    if isinstance(cell, int | float) and not isinstance(cell, bool) and not math.isnan(cell):
        cell = number_text(cell)
    if not isinstance(cell, str):
        raise BadCell(NOT_TEXT)
    if not cell.strip():
        raise BadCell(EMPTY)
    if len(cell) > MAXIMUM_TEXT_LENGTH:
        raise BadCell(TOO_LONG)
    check_storable(cell)
    return cell


def number_text(number: float | Decimal) -> str:
    """Return a number as every file writes it: a whole one without a point."""
    value = float(number)
    return str(int(number)) if abs(value) < 2**53 and value.is_integer() else str(number)


def check_storable(text: str) -> None:
    """Refuse what a UTF-8 database cannot hold; undecodable bytes arrive as lone surrogates."""
    if "\0" in text:
        raise BadCell(NUL)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Bytes that could not be decoded are told from halves that the file itself holds.
        raise BadCell(HALF if BROKEN.search(text) else NOT_UTF8) from None


def read_contributor(cell: Any, *, required: bool) -> str | None:
    """Return one name for one person: spaces around it and the way accents are encoded do not make two."""
    if isinstance(cell, int) and not isinstance(cell, bool):
        cell = str(cell)
    if cell is None or cell == "":
        if required:
            raise BadCell(EMPTY)
        return None
    if not isinstance(cell, str):
        raise BadCell(NOT_TEXT)
    name = cell.strip()
    if not name:
        return read_contributor(None, required=required)
    if name.isascii():
        return name
    check_storable(name)
    return unicodedata.normalize("NFC", name)


def plain_names(cells: list[Any]) -> list[str | None] | None:
    """Return what `read_contributor` would, at once, if every cell is a plain ASCII name; else None."""
    try:
        if not "".join(cells).isascii():
            return None
    except TypeError:
        return None
    names: list[str | None] = list(map(str.strip, cells))
    return names if all(names) else None
