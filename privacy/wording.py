"""Sentences that hold values: said in English wherever they arise, and found again where a page tells them.

What is said may be stored, logged or sent to a program before anybody reads it, so it is plain English text. Each
template is a message of the catalogues; a page finds the one a sentence was made from, and fills its translation with
the same values.
"""

import re
from collections.abc import Iterable
from string import Formatter
from typing import Any

NUMBER = r"[-+.,\d]+(?:e[-+]\d+)?|inf|nan"


def say(template: str, /, **values: Any) -> str:
    """Fill a template's `{name}` fields; what is said of them in turn stands under `reason` or `word`."""
    return template.format_map(values)


def pattern_of(template: str) -> re.Pattern[str]:
    """Return what matches every sentence a template can become, with a group for each field."""
    parts: list[str] = []
    known: set[str] = set()
    for text, name, spec, _conversion in Formatter().parse(template):
        parts.append(re.escape(text))
        if name is not None:
            # Only numbers have a format.
            parts.append(f"(?P={name})" if name in known else f"(?P<{name}>{NUMBER if spec else '.+?'})")
            known.add(name)
    return re.compile("".join(parts), re.DOTALL)


def is_template(text: str) -> bool:
    """Say whether a message has fields that `say` fills."""
    return bool(re.search(r"\{[a-z_]+[^{}]*\}", text)) and "<" not in text


def most_specific_first(templates: Iterable[str]) -> list[str]:
    """Order templates so that one whose own words are many is tried before one that matches nearly anything."""
    return sorted(
        templates, key=lambda template: (-sum(len(part[0]) for part in Formatter().parse(template)), template)
    )
