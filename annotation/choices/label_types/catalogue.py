"""The types of label there are; a further one joins by one line."""

from collections.abc import Mapping
from typing import Any

from annotation.choices.label_types.base import LabelType
from annotation.choices.label_types.choose import ChooseOne
from annotation.choices.label_types.confirm import ConfirmGuess
from annotation.choices.label_types.rating import Rate
from annotation.choices.label_types.several import ChooseSeveral

LABEL_TYPES: tuple[type[LabelType], ...] = (ChooseOne, ChooseSeveral, ConfirmGuess, Rate)
_BY_NAME = {each.name: each() for each in LABEL_TYPES}


def label_type_named(name: str) -> LabelType:
    """Return a type of label, at its defaults, by the name under which projects store it."""
    return _BY_NAME[name]


def label_type_of(name: str, settings: Mapping[str, Any]) -> LabelType:
    """Return a type of label with the parameters of a project; most have none."""
    kind = _BY_NAME[name]
    return type(kind).of(settings) if kind.parameters() else kind
