"""Catalogue of label types; a further one joins by one line."""

from collections.abc import Mapping
from typing import Any

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.label_types.base import LabelType
from annotation.choices.label_types.choose import ChooseOne
from annotation.choices.label_types.confirm import ConfirmGuess
from annotation.choices.label_types.rating import Rate
from annotation.choices.label_types.several import ChooseSeveral
from annotation.choices.label_types.spans import MarkSpans
from privacy.choices import Kind

LABEL_TYPES: tuple[type[LabelType], ...] = (ChooseOne, ChooseSeveral, ConfirmGuess, Rate, MarkSpans)


def label_class(name: str) -> type[LabelType]:
    found = CATALOGUE.find(Kind.LABEL_TYPE, name)
    if found is None or not issubclass(found, LabelType):
        raise KeyError(name)
    return found


def label_type_of(name: str, settings: Mapping[str, Any]) -> LabelType:
    return label_class(name).of(settings)
