"""Training a pool whenever a fixed number of new labels has come in."""

from dataclasses import dataclass
from typing import ClassVar

from annotation.choices.policies.base import NO_ROUNDS, PolicyChoice
from privacy.choices import Sound
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class PerRound(PolicyChoice):
    """Whenever so many new labels have come in."""

    name: ClassVar[str] = "per_round"
    label: ClassVar[str] = _("pool: whenever a fixed number of new labels has come in")
    sound: ClassVar[Sound] = Sound(arrivals=("pool",), why_not={"stream": NO_ROUNDS})

    def _labels_due(self, last: int, each: int) -> int:
        return last + each
