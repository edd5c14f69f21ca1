"""Base class of estimators, and the label types each of them learns from."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

from annotation.choices.catalogue import CATALOGUE, chosen_of
from annotation.choices.label_types.base import LabelType, Teaching
from annotation.choices.label_types.choose import ChooseOne
from privacy.accounting.event import Event
from privacy.choices import Choice, Kind
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

# Said to an estimator that does not learn from such answers; {wanted} stands for the names of those that do.
NOT_LEARNED: Final[Mapping[Teaching, str]] = {
    Teaching.CLASSES: _("This model learns nothing from such answers."),
    Teaching.SETS: _("Such answers need the model {wanted}."),
    Teaching.CONFIRMATIONS: _("Such answers need the model {wanted}."),
    Teaching.SPANS: _("This model learns nothing from such answers."),
}


@dataclass(frozen=True)
class LearnsLabels(Choice):
    """Estimator of a project.

    `learns` says what answers must say for it to learn from them. `learns_responses`: it learns from what was said
    through a randomiser, whose law it knows, or is no secret; that is free.
    """

    kind: ClassVar[Kind] = Kind.ESTIMATOR
    learns: ClassVar[Collection[Teaching]] = (Teaching.CLASSES,)
    learns_responses: ClassVar[bool] = False

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        unlearned = not_learned({**settings, Kind.ESTIMATOR.key: self.name})
        return {Kind.ESTIMATOR.key: unlearned} if unlearned else {}


@runtime_checkable
class PricesTraining(Protocol):
    """An estimator each of whose trainings is charged an epsilon of its own."""

    @property
    def training_epsilon(self) -> float: ...


@runtime_checkable
class ChargesReleases(Protocol):
    """An estimator that knows what one release of a pool's model is charged."""

    def release(self, settings: Mapping[str, Any]) -> Event | None:
        """Return the event of one release, None where that is nothing or decided elsewhere."""


def chosen_estimator(settings: Mapping[str, Any]) -> type[LearnsLabels] | None:
    found = chosen_of(Kind.ESTIMATOR, settings)
    return found if found is not None and issubclass(found, LearnsLabels) else None


def training_epsilon(settings: Mapping[str, Any]) -> float | None:
    """Return the intended cost of one training, or of one update of a stream; None where there is no such price."""
    trained = chosen_estimator(settings)
    chosen = None if trained is None else trained.of(settings)
    return chosen.training_epsilon if isinstance(chosen, PricesTraining) else None


def training_delta(settings: Mapping[str, Any]) -> float:
    """Return what the noise of one training leaves outside epsilon; 0 where it has no Gaussian noise."""
    trained = chosen_estimator(settings)
    return 0.0 if trained is None else getattr(trained.of(settings), "training_delta", 0.0)


def learn_responses() -> str:
    return ", ".join(each.name for each in _learners() if each.learns_responses)


def not_learned(settings: Mapping[str, Any]) -> str:
    asked = chosen_of(Kind.LABEL_TYPE, {Kind.LABEL_TYPE.key: ChooseOne.name, **settings})
    learner = chosen_estimator(settings)
    if asked is None or learner is None or not issubclass(asked, LabelType) or asked.teaches in learner.learns:
        return ""
    if tuple(learner.learns) == (Teaching.SETS,):
        return _("This model learns nothing from such answers.")
    if tuple(learner.learns) == (Teaching.SPANS,):
        return _("This model learns nothing from such answers.")
    able = ", ".join(each.name for each in _learners() if asked.teaches in each.learns)
    return as_message(NOT_LEARNED[asked.teaches], wanted=able)


def is_learned(name: str) -> bool:
    """Say whether some estimator learns from the answers to a type of label."""
    asked = CATALOGUE.find(Kind.LABEL_TYPE, name)
    taught = asked.teaches if asked is not None and issubclass(asked, LabelType) else None
    return any(taught in each.learns for each in _learners())


def _learners() -> list[type[LearnsLabels]]:
    return [each for each in CATALOGUE.of_kind(Kind.ESTIMATOR) if issubclass(each, LearnsLabels)]
