"""Presets of projects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Preset:
    key: str
    title: str
    sentence: str
    oracle: str
    data_kinds: tuple[str, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    cost: str = ""
    # Which answers a release is made of.
    made_of: str = ""
