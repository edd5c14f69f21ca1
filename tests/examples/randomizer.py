"""Randomiser that leaves a part of its epsilon unspent."""

from dataclasses import dataclass
from typing import Any, ClassVar

from annotation.choices.randomizers import RandomizerChoice
from privacy.accounting.events import RandomizedAnswersEvent
from privacy.choices import Sound, parameter


@dataclass(frozen=True)
class Hushed(RandomizerChoice):
    """Every class may be said, and a part of epsilon stays unspent."""

    name: ClassVar[str] = "hushed"
    label: ClassVar[str] = "answers said quietly"
    sound: ClassVar[Sound] = Sound(
        oracles=("crowd",),
        arrivals=("pool",),
        data_kinds=("text",),
        why_not={"trusted": "Only a crowd's answers are randomised."},
    )

    loudness: float = parameter(
        0.5,
        above=0,
        at_most=1,
        label="Loudness",
        help="Part of the epsilon that is used.",
        rule="Up to 1, not {got}.",
        charged=True,
    )

    def event(self, *, n_classes: int, **circumstances: Any) -> RandomizedAnswersEvent:
        return RandomizedAnswersEvent(4.0 * self.loudness, n_classes, "uniform")
