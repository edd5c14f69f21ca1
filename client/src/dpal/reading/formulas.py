"""Cells that a spreadsheet would run as a formula: an apostrophe keeps them texts, and reading takes it away."""

import re

# What begins a formula, also in full width and after spaces that a spreadsheet drops.
STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
DROPPED = ("\t", "\r", "\n")
QUOTE = "'"
# Numbers, telephone numbers, ids and words: nothing here can call a function, a program or another file.
HARMLESS = re.compile(r"[-+](?=.*\w)(?:[\w.,:/ -]*|[\d().,/ -]*)")


def protected(text: str) -> str:
    """Return the text as no spreadsheet runs it; `unprotected` returns what it was."""
    if text[:1].isalnum():
        return text
    return f"{QUOTE}{text}" if runs(text) or is_protected(text) else text


def unprotected(text: str) -> str:
    return text[1:] if is_protected(text) else text


def runs(text: str) -> bool:
    return begins_formula(text) and not HARMLESS.fullmatch(text)


def begins_formula(text: str) -> bool:
    return text.startswith(DROPPED) or text.lstrip().startswith(STARTS)


def is_protected(text: str) -> bool:
    return text.startswith(QUOTE) and begins_formula(text.lstrip(QUOTE))
