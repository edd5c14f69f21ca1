"""When answers become an update or a training, as projects choose it; `learner.policies` has the rules."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from privacy.choices import Choice, Kind, Sound, parameter
from privacy.wording import gettext_noop as _

STREAM: Final = ("stream",)
LONGEST_WINDOW: Final = 10_000_000
WINDOW: Final = _("Window or batch")
WINDOW_HELP: Final = _("Records of a window, answers of a batch (at least 50), or records of the first doubling block.")
OF_STREAMS: Final = Sound(
    oracles=("trusted",),
    arrivals=STREAM,
    why_not={"pool": _("A pool trains per round or when labels double; windows and batches need a stream.")},
)


@dataclass(frozen=True)
class _Policy(Choice):
    """When something is learned; what that costs, estimator and selection say."""

    kind: ClassVar[Kind] = Kind.POLICY
    # Each training of a pool pays for itself; of a stream everything stays.
    stays: ClassVar[bool] = False

    def event(self, *args: Any, **circumstances: Any) -> None:
        """Return nothing: what is learned is charged, not when."""


@dataclass(frozen=True)
class PerRound(_Policy):
    """Whenever so many new labels have come in."""

    name: ClassVar[str] = "per_round"
    label: ClassVar[str] = _("pool: whenever a fixed number of new labels has come in")
    sound: ClassVar[Sound] = Sound(
        arrivals=("pool",),
        why_not={"stream": _("Rounds need a pool that waits; a stream updates at once, by windows or by batches.")},
    )


@dataclass(frozen=True)
class _OfStreams(_Policy):
    """What waits for answers, and for how long at most."""

    window_hours: int = parameter(
        24,
        at_least=1,
        at_most=10_000,
        arrivals=STREAM,
        label=_("Hours to answer"),
        help=_("A batch makes its update then, whatever is answered; a hidden window exactly then."),
    )


@dataclass(frozen=True)
class Doubling(_OfStreams):
    """Whenever twice as much has come in; of a stream the first block has a length."""

    name: ClassVar[str] = "doubling"
    label: ClassVar[str] = _("whenever the number of labels, or of a stream's records, has doubled")

    window_length: int | None = parameter(
        None, at_least=1, at_most=LONGEST_WINDOW, arrivals=STREAM, label=WINDOW, help=WINDOW_HELP
    )


@dataclass(frozen=True)
class Immediate(_OfStreams):
    """After every answer."""

    name: ClassVar[str] = "immediate"
    label: ClassVar[str] = _("stream: after every record that was asked about")
    sound: ClassVar[Sound] = OF_STREAMS


@dataclass(frozen=True)
class _Windows(_OfStreams):
    """So many records or questions at a time."""

    sound: ClassVar[Sound] = OF_STREAMS

    window_length: int = parameter(
        None,
        at_least=1,
        at_most=LONGEST_WINDOW,
        label=WINDOW,
        help=WINDOW_HELP,
        rule=_("Must be at least 1, got {got}."),
    )


@dataclass(frozen=True)
class VisibleWindows(_Windows):
    """Windows of records; which of them were asked about is public."""

    name: ClassVar[str] = "flsw"
    label: ClassVar[str] = _("stream: windows of a fixed number of records, selection visible")


@dataclass(frozen=True)
class HiddenWindows(_Windows):
    """Windows of records; which of them were asked about stays secret."""

    name: ClassVar[str] = "flsw_hidden"
    label: ClassVar[str] = _("stream: windows of a fixed number of records, selection hidden")

    window_denominator: int = parameter(
        None,
        at_least=1,
        at_most=2**31 - 1,
        label=_("Hidden windows: denominator"),
        help=_("About as many as a window selects; public, so that the true number stays hidden."),
    )


@dataclass(frozen=True)
class Batches(_Windows):
    """Batches of questions."""

    name: ClassVar[str] = "flmb"
    label: ClassVar[str] = _("stream: batches of a fixed number of questions")


POLICIES: tuple[type[Choice], ...] = (PerRound, Immediate, VisibleWindows, HiddenWindows, Batches, Doubling)
