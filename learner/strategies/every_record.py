"""Ask about every record of a stream."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from learner.strategies.base import StrategyChoice
from learner.strategies.random import RandomChoice
from privacy.choices import Sound
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class EveryRecord(StrategyChoice):
    """Asking about every record of a stream."""

    name: ClassVar[str] = "all"
    label: ClassVar[str] = _("every record of a stream")
    sound: ClassVar[Sound] = Sound(
        oracles=("trusted",), arrivals=("stream",), why_not={"pool": _("Only streams ask about every record.")}
    )

    def why(self, settings: Mapping[str, Any]) -> str:
        return _("every record of a stream")

    def rates(self) -> tuple[float, float]:
        return 1.0, 1.0

    def strategy(self) -> RandomChoice:
        """Return what it amounts to: who asks about every record asks about those that happen to come."""
        return RandomChoice()
