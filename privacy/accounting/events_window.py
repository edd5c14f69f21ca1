"""The event of a gate that runs on: its runs count the newest uploads together, and the series of them is paid once."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import ClassVar, Final

from privacy.accounting import checks
from privacy.accounting.cost import Adjacency, Cost
from privacy.accounting.event import Event, EventWords
from privacy.accounting.events_gate import ANY_ADJACENCY, GateEvent
from privacy.wording import as_message, ngettext_noop
from privacy.wording import gettext_noop as _

# A week of hours; a run reads all of them.
MOST_UPLOADS_TOGETHER: Final = 168


@dataclass(frozen=True, slots=True)
class GateWindowEvent(Event):
    r"""One run of a gate over the newest `window` uploads; the first entry of a series pays for all uploads to come.

    Uploads are epochs, counted from 1 in the order of their first runs. The run of epoch e reads the uploads of epochs
    :math:`e - W + 1` to e. `inner` is what one run costs one record. `epochs` says how many epochs were entered before
    this run, and `repeats` names the epochs of all runs before it that were not the first of their epoch: any of them
    may have released. The first entry opens the series, each later one descends from the one before.

    A record stands in one upload, and no upload depends on the records of another but by what a gate let out.
    """

    inner: Event
    window: int
    epoch: int
    epochs: int = 0
    repeats: tuple[int, ...] = ()
    kind: ClassVar[str] = "gate_window"
    words: ClassVar[EventWords] = EventWords(
        _("gate over several uploads"),
        ngettext_noop(
            "%(window)s upload counted at a time; the first run paid for all of them",
            "at most %(window)s uploads counted together; the first run paid for all of them",
        ),
        counted="window",
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        """Check the ranges, and that the gate has a proof for a series and protects what stands in one upload."""
        if not isinstance(self.inner, GateEvent):
            raise ValueError(as_message("{kind} is no run of a gate", kind=self.inner.kind))
        if not self.inner.proved_in_windows:
            raise ValueError(
                as_message("{kind} has no proof over uploads that are counted together", kind=self.inner.kind)
            )
        if self.inner.unit != "record":
            raise ValueError(as_message("a person may be in every upload, so a series of uploads protects one record"))
        checks.at_least("window", self.window, 1)
        if self.window > MOST_UPLOADS_TOGETHER:
            raise ValueError(
                as_message("window must be at most {most}, got {got}", most=MOST_UPLOADS_TOGETHER, got=self.window)
            )
        checks.at_least("epochs", self.epochs, 0)
        if not 1 <= self.epoch <= self.epochs + 1:
            raise ValueError(
                as_message("epoch must lie in [1, {most}], got {epoch}", most=self.epochs + 1, epoch=self.epoch)
            )
        if list(self.repeats) != sorted(self.repeats) or not all(1 <= epoch <= self.epochs for epoch in self.repeats):
            raise ValueError(as_message("repeats must be epochs that were entered, in their order"))

    @classmethod
    def next_of(
        cls, before: "GateWindowEvent | None", inner: Event, *, window: int, epoch: int | None = None
    ) -> "GateWindowEvent":
        """Return the run after the entry `before`, or the one that opens a series; without `epoch`, of a new one."""
        epochs, repeats = (0, ()) if before is None else before.counted
        return cls(inner, window, epochs + 1 if epoch is None else epoch, epochs, repeats)

    @property
    def counted(self) -> tuple[int, tuple[int, ...]]:
        """Epochs that were entered, and those of repeated runs, once this run is made."""
        if self.epoch > self.epochs:
            return self.epoch, self.repeats
        return self.epochs, tuple(sorted((*self.repeats, self.epoch)))

    @property
    def first(self) -> int:
        """The oldest epoch that this run reads."""
        return max(1, self.epoch - self.window + 1)

    @property
    def needs_parent(self) -> bool:
        """Whether the series is open already."""
        return self.epochs > 0

    def check_parent(self, parent: Event | None) -> None:
        """Refuse to continue anything but this series, as far as it has come."""
        Event.check_parent(self, parent)
        if not self.needs_parent:
            return
        if not isinstance(parent, GateWindowEvent) or (parent.inner, parent.window) != (self.inner, self.window):
            raise ValueError(as_message("a further run must descend from one of the same gate over as many uploads"))
        if parent.counted != (self.epochs, self.repeats):
            raise ValueError(as_message("a further run must count every run of the series before"))

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        r"""Return what this run adds to the series: W runs with the first entry, nothing with an ordinary one.

        Notes
        -----
        Let neighbours differ in a record of the upload of epoch j. Only runs of the epochs j to j + W - 1 read it.
        Given what was released before, every other run has the same law for both, and so has the choice of what is
        uploaded and run next. So the ratio of all outputs is the product of the ratios of those runs alone, each of
        which is within `inner`: the record pays for as many runs as those epochs had, by adaptive composition. These
        are at most W first runs and r repeats, r being the repeats within any W consecutive epochs at the most.

        The entry that opens the series pays W runs; one that makes r larger pays one more, before the run reads
        anything. So at every moment the account holds at least what the runs so far cost any one record, which is all
        that a filter needs: for each pair of neighbours it bounds the runs that can tell them apart. An epsilon, a
        delta and a rho of a run add up alike. Which record it is does not matter, nor how many epochs follow: records
        of different uploads are different ones (parallel composition).

        For a person of at most m records of all uploads, a run that reads n of them costs the group of n; every record
        is read at most C = W + r times, so these n add up to at most m C, and the epsilon, delta and rho of groups are
        convex in n and nothing at 0: all runs cost at most C times the group of m. `Cost.of_group` of these entries
        is no less.
        """
        runs = self._paid(*self.counted) - self._paid(self.epochs, self.repeats)
        return self.inner.cost(adjacency=adjacency).times(runs)

    def _paid(self, epochs: int, repeats: tuple[int, ...]) -> int:
        """Return the runs that the series has paid for: none before it is open."""
        if not epochs:
            return 0
        within = (bisect_right(repeats, first + self.window - 1) - place for place, first in enumerate(repeats))
        return self.window + max(within, default=0)

    def summary(self) -> str:
        """Return one sentence."""
        if self.first == self.epoch:
            return as_message("upload {epoch} alone: {reason}", epoch=self.epoch, reason=self.inner.summary())
        return as_message(
            "uploads {first} to {epoch} together: {reason}",
            first=self.first,
            epoch=self.epoch,
            reason=self.inner.summary(),
        )
