"""How cards write names, numbers and tables, so that nothing in them acts as Markdown or HTML."""

from collections.abc import Sequence


def markdown_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a Markdown table."""
    ruler = "|" + "---|" * len(head)
    return [f"| {' | '.join(head)} |", ruler, *(f"| {' | '.join(plain(cell) for cell in row)} |" for row in rows)]


def number(value: float) -> str:
    """Write a number with six digits at most."""
    return f"{value:.6g}"


def plain(text: str) -> str:
    """Keep names from acting as Markdown or HTML, and on one line."""
    flat = " ".join(str(text).split())
    for character in "\\`*_[]<>|#":
        flat = flat.replace(character, "\\" + character)
    return flat


def code(text: str) -> str:
    """Quote a name as code."""
    return "`" + " ".join(text.split()).replace("`", "'") + "`"
