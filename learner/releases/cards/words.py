"""Names, numbers and tables of cards, so that nothing in them acts as Markdown or HTML."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context
from typing import Final

# As many digits as every float keeps.
DIGITS_KEPT: Final = 15


def markdown_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    ruler = "|" + "---|" * len(head)
    return [
        f"| {' | '.join(head)} |",
        ruler,
        *(f"| {' | '.join(plain(cell) for cell in row)} |" for row in rows),
    ]


def number(value: float) -> str:
    return f"{value:.6g}"


def number_pair(epsilon: float, delta: float) -> str:
    return f"{epsilon:.6g}, {delta:.6g}"


def stated_limit(value: float) -> float:
    """Return the limit that an amount which may be spent comes from: the shortest number that is not below it."""
    return float(Context(prec=DIGITS_KEPT, rounding=ROUND_CEILING).create_decimal(repr(value)))


def plain(text: str) -> str:
    """Keep names from acting as Markdown or HTML, and on one line."""
    flat = " ".join(str(text).split())
    for character in "\\`*_[]<>|#":
        flat = flat.replace(character, "\\" + character)
    return flat


def code(text: str) -> str:
    return "`" + " ".join(text.split()).replace("`", "'") + "`"
