"""Metadata at the head of a Markdown file, as YAML that every reader takes for the same."""

import json
import re
from collections.abc import Mapping
from typing import Any

# What YAML does not take in a text, or takes for the end of a line.
UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def front_matter_lines(fields: Mapping[str, Any]) -> list[str]:
    """Return the lines of a front matter, one for each field, and an empty one."""
    return ["---", *(f"{name}: {as_yaml(value)}" for name, value in fields.items()), "---", ""]


def as_yaml(value: Any) -> str:
    """Return a value on one line: JSON, but for two things that YAML 1.1 reads otherwise.

    There 1e-06 is a text, since it lacks a point, and some characters that JSON leaves alone end a line.
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_yaml(name)}: {as_yaml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_yaml, value)) + "]"
    if isinstance(value, float):
        digits, exponent, power = repr(value).partition("e")
        return digits + ("" if "." in digits else ".0") + exponent + power
    if isinstance(value, str):
        return UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
    return json.dumps(value)
