"""What a project chooses for learning from each answer of a stream at once."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from annotation.choices.label_types.base import Teaching
from annotation.choices.label_types.learning import LearnsLabels
from privacy.accounting.event import Event
from privacy.choices import Sound, parameter
from privacy.wording import gettext_noop as _

OF_STREAMS: Final = {"pool": _("Online gradient descent takes the records of a stream, one after another.")}


@dataclass(frozen=True)
class _Online(LearnsLabels):
    """Learning from each answer at once; `learner.online` has its parameters."""

    sound: ClassVar[Sound] = Sound(oracles=("trusted",), arrivals=("stream",), why_not=OF_STREAMS)

    noise_sigma: float = parameter(
        5.0, above=0, label=_("Noise of each coordinate"), help=_("What the stream costs follows from it.")
    )
    expected_answers: int = parameter(
        5000,
        at_least=1,
        at_most=2**31 - 1,
        label=_("Answers to expect"),
        help=_("Sets the step; public."),
    )
    weight_radius: float = parameter(
        5.0,
        above=0,
        label=_("Radius of the weights"),
        help=_("20 to 80 for batches; in a unit ball hardly anything is learned."),
    )
    average_iterates: bool = parameter(
        True,
        label=_("Release the average of all updates"),
        help=_("Averaging takes noise out of the weights and costs nothing."),
    )
    training_delta: float = parameter(
        1e-6,
        above=0,
        below=1,
        label=_("Delta of the stream"),
        help=_("At which its epsilon is stated; the pool's limit must exceed it."),
        rule=_("Must lie between 0 and 1, got {got}: Gaussian noise has an epsilon at a delta."),
    )

    def event(self, *, learner: Any, n_features: int, **circumstances: Any) -> Event:
        """Return the accountant's event of one record's step."""
        event: Event = learner.event_for(n_features)
        return event


@dataclass(frozen=True)
class FullInformation(_Online):
    """One noisy gradient of each record."""

    name: ClassVar[str] = "mi_ogd"
    label: ClassVar[str] = _("online gradient descent, one noisy gradient of each record (has a delta)")
    words: ClassVar[str] = _("logistic regression by noisy online gradient descent")


@dataclass(frozen=True)
class Confirmations(_Online):
    """One noisy step of each confirmation."""

    name: ClassVar[str] = "bandit_ogd"
    label: ClassVar[str] = _("online gradient descent from confirmations (has a delta)")
    words: ClassVar[str] = _("logistic regression by noisy online gradient descent from confirmations")
    learns: ClassVar[Collection[Teaching]] = (Teaching.CONFIRMATIONS,)
    learns_only: ClassVar[str] = _("Bandit learning asks for confirmations: it learns from nothing else.")
