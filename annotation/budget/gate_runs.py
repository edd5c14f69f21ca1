"""What the next run of a project's gate is charged, and which uploads it counts: all of it stands in the ledger."""

from django.db.models import QuerySet

from annotation.choices.gates import run_event
from annotation.models import Dataset, Project
from privacy.accounting.event import Event
from privacy.accounting.events import GateEvent, GateWindowEvent, event_from_json
from privacy.ledger.models import EntryKind, LedgerEntry

SUBJECT = "dataset:"


def one_run(project: Project) -> GateEvent:
    return run_event(project.settings)


def coming_run(project: Project, upload: Dataset | None = None) -> Event:
    once = one_run(project)
    if project.gate_window is None:
        return once
    newest = _series(project).last()
    before = None if newest is None else _run(newest)
    earlier = None if upload is None else _series(project).filter(subject=subject_of(upload)).first()
    epoch = None if earlier is None else _run(earlier).epoch
    return GateWindowEvent.next_of(before, once, window=project.gate_window, epoch=epoch)


def uploads_in(reservation: LedgerEntry, upload: Dataset) -> list[Dataset]:
    """Return the uploads that a reserved run counts, in the order of their first runs; `upload` is its own."""
    event = event_from_json(reservation.event)
    if not isinstance(event, GateWindowEvent):
        return [upload]
    found: dict[int, str] = {}
    for entry in _series(upload.project).filter(sequence__lte=reservation.sequence).reverse().iterator():
        epoch = _run(entry).epoch
        if event.first <= epoch <= event.epoch:
            found[epoch] = entry.subject
        if len(found) == event.epoch - event.first + 1:
            break
    ids = [int(found[epoch].removeprefix(SUBJECT)) for epoch in sorted(found)]
    uploads = Dataset.objects.select_related("project").in_bulk(ids)
    return [uploads[pk] for pk in ids]


def subject_of(upload: Dataset) -> str:
    return f"{SUBJECT}{upload.pk}"


def _series(project: Project) -> QuerySet[LedgerEntry]:
    """Return the reservations of the project's series, oldest first; none is ever given back."""
    entries = LedgerEntry.objects.filter(
        account=project.pool_account_id, kind=EntryKind.RESERVE, mechanism=GateWindowEvent.kind
    )
    return entries.order_by("sequence")


def _run(entry: LedgerEntry) -> GateWindowEvent:
    event = event_from_json(entry.event)
    assert isinstance(event, GateWindowEvent)
    return event
