"""The event of a gate over a table that stays where it is: the run, and which snapshot of the table it read."""

import re
from dataclasses import dataclass
from typing import ClassVar

from privacy.accounting.cost import Adjacency, Cost, Unit
from privacy.accounting.event import Event, EventWords
from privacy.accounting.events_gate import ANY_ADJACENCY, GateEvent
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

SNAPSHOT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class GateOfSnapshotEvent(Event):
    """One run of a gate over the files of one snapshot, charged as the same run over an upload.

    `inner` is the run. `snapshot` is the id under which the table was registered; it is keyed with a secret of the
    registration, so it has the same law whatever the rows are. Another snapshot is another pool: a record that stands
    in both pays for both.
    """

    inner: Event
    snapshot: str
    kind: ClassVar[str] = "gate_of_snapshot"
    words: ClassVar[EventWords] = EventWords(
        _("gate over a registered table"),
        _("over a registered table; its snapshot is %(snapshot)s"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        """Check that a gate ran that has a proof there, over a snapshot that is named."""
        if not isinstance(self.inner, GateEvent):
            raise ValueError(as_message("{kind} is no run of a gate", kind=self.inner.kind))
        if not self.inner.proved_over_snapshots:
            raise ValueError(as_message("{kind} has no proof over a registered table", kind=self.inner.kind))
        if not SNAPSHOT.fullmatch(self.snapshot):
            raise ValueError(as_message("a snapshot is named by 64 hexadecimal digits"))

    @property
    def unit(self) -> Unit:
        """Whose presence the run hides."""
        assert isinstance(self.inner, GateEvent)
        return self.inner.unit

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the cost of the run: where the rows lie changes nothing of it."""
        return self.inner.cost(adjacency=adjacency)

    def summary(self) -> str:
        """Return one sentence."""
        return as_message("a registered table: {reason}", reason=self.inner.summary())
