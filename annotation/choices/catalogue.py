"""Catalogue of all choices; the learner adds its own when the site starts."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from privacy.choices import Catalogue, Choice, Kind, Parameter

CATALOGUE: Final = Catalogue()
# Settings that are stored under the name of a kind.
KEYS: Final = tuple(kind.key for kind in Kind if kind.key)


def chosen_of(kind: Kind, settings: Mapping[str, Any]) -> type[Choice] | None:
    return CATALOGUE.find(kind, str(settings.get(kind.key) or ""))


def offered(kind: Kind, *, oracle: str, arrival: str, data_kinds: Collection[str]) -> list[tuple[str, str]]:
    found = CATALOGUE.offered(kind, oracle=oracle, arrival=arrival, data_kinds=data_kinds)
    return [(choice.name, choice.label) for choice in found]


def parameter_names(kind: Kind) -> list[str]:
    return list(dict.fromkeys(each.name for choice in CATALOGUE.of_kind(kind) for each in choice.parameters()))


def declaration_of(name: str) -> Parameter | None:
    return CATALOGUE.parameters().get(name)


def default_of(name: str) -> Any:
    """Return what a declared setting is where a document does not hold it: its default, or nothing chosen."""
    found = declaration_of(name)
    if found is not None:
        return list(found.default) if found.type is tuple else found.default
    return "" if name in KEYS else None
