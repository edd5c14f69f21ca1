"""Rating: a step of a scale whose order matters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from annotation.choices.consensus import Agreement, median, median_by_coin
from annotation.choices.label_types.base import DIGITS, LAST_STEP, LabelType
from annotation.choices.label_types.coefficient import ORDINAL, Coefficient
from privacy.choices import Sound
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

# As many as there are keys in a row.
MOST_STEPS: Final = 11


@dataclass(frozen=True)
class Rate(LabelType):
    """The classes are steps from lowest to highest; an answer is stored as the position of its step."""

    name: ClassVar[str] = "rating"
    label: ClassVar[str] = _("rate on a scale")
    help: ClassVar[str] = _("2 to 11 steps in order; a record has the median of its answers.")
    sound: ClassVar[Sound] = Sound(
        arrivals=("pool",), why_not={"stream": _("A stream asks for one class, or for a yes or no.")}
    )
    widget: ClassVar[str] = "annotation/choices/_label_scale.html"
    coefficient: ClassVar[Coefficient] = ORDINAL

    def possible(self, n_classes: int) -> int:
        return n_classes

    def exported(self, choice: int, classes: Sequence[str], guess: int | None) -> str:
        return classes[choice]

    def keys(self, names: Sequence[str]) -> list[str]:
        if all(name in (*DIGITS, "10") for name in names):
            return [name if len(name) == 1 else LAST_STEP for name in names]
        return list((DIGITS + LAST_STEP)[: len(names)])

    def agreed(self, votes: Sequence[int]) -> Agreement | None:
        return median(votes)

    def settled(self, votes: Sequence[int], *, rng: RandomSource) -> int:
        return median_by_coin(votes, rng=rng)

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        broken = dict(super().rules(settings))
        if len(settings["classes"]) > MOST_STEPS:
            broken["classes"] = as_message("A scale has at most {most} steps.", most=MOST_STEPS)
        return broken
