"""Base class of update policies: when answers become an update or a training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from annotation.choices.policies.updates import BatchPolicy
from privacy.choices import FreeChoice, Kind, Sound, parameter
from privacy.wording import gettext_noop as _

STREAM: Final = ("stream",)
LONGEST_WINDOW: Final = 10_000_000
NO_ROUNDS: Final = _("Rounds need a pool that waits; a stream updates at once, by windows or by batches.")
NO_WINDOWS: Final = _("A pool trains per round; windows and batches need a stream.")
SHOWS_SELECTION: Final = _(
    "Only windows of a fixed number of records can hide the selection: a batch shows by its time that it is "
    "full, and an update that is left out shows that nothing was selected."
)
OF_STREAMS: Final = Sound(oracles=("trusted",), arrivals=STREAM, why_not={"pool": NO_WINDOWS, "crowd": NO_WINDOWS})


@dataclass(frozen=True)
class PolicyChoice(FreeChoice):
    """When something is learned; what that costs, estimator and selection say."""

    kind: ClassVar[Kind] = Kind.POLICY
    # Each training of a pool pays for itself; of a stream everything stays.
    stays: ClassVar[bool] = False
    hides_selection: ClassVar[bool] = False

    def labels_for_next_release(self, *, labels_at_last_release: int, labels_per_release: int) -> int:
        """Return how many labels in total make the next release of a pool due."""
        if labels_at_last_release < 0:
            raise ValueError(f"labels_at_last_release must be >= 0, got {labels_at_last_release}")
        if labels_per_release < 1:
            raise ValueError(f"labels_per_release must be >= 1, got {labels_per_release}")
        return self._labels_due(labels_at_last_release, labels_per_release)

    def labels_needed(self, *, labels_now: int, labels_at_last_release: int, labels_per_release: int) -> int:
        """Return how many more labels make the next release of a pool due, 0 where it is due already."""
        target = self.labels_for_next_release(
            labels_at_last_release=labels_at_last_release, labels_per_release=labels_per_release
        )
        return max(0, target - labels_now)

    def _labels_due(self, last: int, each: int) -> int:
        raise ValueError(f"no pool trains by {self.name!r}")

    def batches(self) -> BatchPolicy:
        raise ValueError(f"no stream updates by {self.name!r}")


@dataclass(frozen=True)
class WindowPolicy(PolicyChoice):
    """So many records or questions at a time, which wait for answers for so long at most."""

    sound: ClassVar[Sound] = OF_STREAMS

    window_length: int = parameter(
        None,
        at_least=1,
        at_most=LONGEST_WINDOW,
        label=_("Window or batch"),
        help=_("Records of a window, or answers of a batch (at least 50)."),
        rule=_("Must be at least 1, got {got}."),
    )
    window_hours: int = parameter(
        24,
        at_least=1,
        at_most=10_000,
        arrivals=STREAM,
        label=_("Hours to answer"),
        help=_("A batch makes its update then, whatever is answered; a hidden window exactly then."),
    )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        declared = {each.name for each in self.parameters()}
        if "window_denominator" not in declared and settings.get("window_denominator") is not None:
            return {"window_denominator": SHOWS_SELECTION}
        return {}
