"""The types of label there are; a further one joins by one line."""

from annotation.choices.label_types.base import LabelType
from annotation.choices.label_types.choose import ChooseOne
from annotation.choices.label_types.confirm import ConfirmGuess
from annotation.choices.label_types.rating import Rate

LABEL_TYPES: tuple[type[LabelType], ...] = (ChooseOne, ConfirmGuess, Rate)
_BY_NAME = {each.name: each() for each in LABEL_TYPES}


def label_type_named(name: str) -> LabelType:
    """Return a type of label by the name under which projects store it."""
    return _BY_NAME[name]
