"""Which model learns from which labels: an estimator says what it learns, a type of label what its answers teach."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from annotation.choices.catalogue import chosen_of
from annotation.choices.label_types.base import LabelType, Teaching
from annotation.choices.label_types.choose import ChooseOne
from privacy.choices import Choice, Kind


@dataclass(frozen=True)
class LearnsLabels(Choice):
    """What a project trains with.

    Attributes
    ----------
    learns : collection of Teaching
        What answers must say for it to learn from them.
    learns_only : str
        What is said to all other answers; where it is empty, their type says why.
    """

    kind: ClassVar[Kind] = Kind.ESTIMATOR
    learns: ClassVar[Collection[Teaching]] = (Teaching.CLASSES,)
    learns_only: ClassVar[str] = ""

    @classmethod
    def broken_by(cls, settings: Mapping[str, Any]) -> dict[str, str]:
        """Return also the rule that answers break from which it learns nothing."""
        unlearned = not_learned({**settings, Kind.ESTIMATOR.key: cls.name})
        return ({Kind.ESTIMATOR.key: unlearned} if unlearned else {}) | super().broken_by(settings)


def not_learned(settings: Mapping[str, Any]) -> str:
    """Say why a project's estimator learns nothing from what its annotators are asked; empty where it does."""
    asked = chosen_of(Kind.LABEL_TYPE, {Kind.LABEL_TYPE.key: ChooseOne.name, **settings})
    learner = chosen_of(Kind.ESTIMATOR, settings)
    if asked is None or learner is None or not (issubclass(asked, LabelType) and issubclass(learner, LearnsLabels)):
        return ""
    return "" if asked.teaches in learner.learns else learner.learns_only or asked.not_learned
