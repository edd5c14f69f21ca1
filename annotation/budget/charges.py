"""Charges of buttons, from declared settings alone; the button shows the charge that is agreed to."""

import math
from collections.abc import Mapping
from typing import Final

from django.db.models import QuerySet

from annotation.choices.gates import run_event
from annotation.choices.label_types.learning import training_epsilon
from annotation.choices.selections import block_rates, selection_choice
from annotation.errors import PriceRefused
from annotation.models import Arrival, Dataset, DatasetRole, Oracle, Project
from privacy.accounting.cost import Cost
from privacy.accounting.event import Event
from privacy.accounting.events import GateEvent, GateWindowEvent, event_from_json
from privacy.accounting.gate_events import WINDOW_KINDS, next_window_run
from privacy.accounting.screens import hidden_selection_epsilon
from privacy.ledger.models import EntryKind, LedgerEntry
from privacy.ledger.selectors import remainder
from privacy.wording import in_english

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
    return next_window_run(before, once, window=project.gate_window, epoch=epoch)


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
    entries = LedgerEntry.objects.filter(
        account=project.pool_account_id, kind=EntryKind.RESERVE, mechanism__in=WINDOW_KINDS
    )
    return entries.order_by("sequence")


def _run(entry: LedgerEntry) -> GateWindowEvent:
    event = event_from_json(entry.event)
    assert isinstance(event, GateWindowEvent)
    return event


AGREED: Final = "agreed"
# Whatever a person can send that has something charged, and where its price stands. What goes on by itself, as declared
# when the project was opened, is charged by no button: answers that complete a training, rounds, blocks.
PRICED: Final[Mapping[str, str]] = {
    "annotation:data": "an upload that is charged is looked at first, and uploaded by the button of that page",
    "annotation:preview": "on the button that uploads",
    "annotation:opening": "on the button that opens the project",
    "annotation:register_table": "on the button that registers",
    "annotation:start_gate": "on the button beside the upload",
    "annotation:set_state": "on the button that resumes",
    "learner:train_on_few": "on the button",
    "learner:shares": "on the button",
    "learner:close_block": "on the button",
    "learner:retry_work": "on the button beside the work",
    "api:start_gate": "in the answer; `most_epsilon` refuses more",
    "api:train_on_few": "in the answer and in `next-step`; `most_epsilon` refuses more",
    "api:close_block": "in the answer and in `next-step`; `most_epsilon` refuses more",
    "api:ask_shares": "in the list of what can be asked for",
    "api:retry_work": "in the answer and in the list of work; `most_epsilon` refuses more",
    "api:set_project_state": "in `next-step`, beside what resumes",
    "api:open_draft": "in the draft; `most_epsilon` refuses more",
    "api:upload_dataset": "in the answer; `most_epsilon` refuses more",
    "api:register_table": "in the answer; `most_epsilon` refuses more",
    "api:post_records": "on the data page and the preset: a stream is paid for once, whole, with its first record",
}


def gate_charge(project: Project, upload: Dataset | None = None) -> Cost:
    return coming_run(project, upload).cost()


def run_charge(project: Project) -> Cost:
    return one_run(project).cost()


def upload_charge(project: Project, role: str, upload: Dataset | None = None) -> Cost | None:
    charged = project.oracle == Oracle.CROWD and role == DatasetRole.POOL and project.gate_epsilon is not None
    return gate_charge(project, upload) if charged else None


def token_of(cost: Cost) -> str:
    return f"{cost.epsilon!r};{cost.delta!r}"


def is_agreed(sent: Mapping[str, str], cost: Cost | None) -> bool:
    return cost is None or sent.get(AGREED) == token_of(cost)


def within_price(cost: Cost | None, most_epsilon: float | None) -> bool:
    return cost is None or most_epsilon is None or (not math.isnan(most_epsilon) and cost.epsilon <= most_epsilon)


def refuse_dearer(cost: Cost | None, most_epsilon: float | None) -> None:
    if not within_price(cost, most_epsilon):
        assert cost is not None
        raise PriceRefused(in_english("most_epsilon: this is charged epsilon {epsilon:g}", epsilon=cost.epsilon))


def budget_is_spent(project: Project) -> bool:
    """Say whether the account that pays for training could not pay for one more release; a stream pays once for all."""
    if project.arrival == Arrival.STREAM:
        return False
    epsilon, chosen = training_epsilon(project.settings), selection_choice(project.settings)
    if epsilon is None:
        # All answers were paid for before the first question, or cost nothing: training again is free.
        return False
    left = remainder(project.labels_account or project.pool_account)
    if chosen is not None and (rates := block_rates(chosen.of(project.settings))):
        epsilon = hidden_selection_epsilon(min(rates), epsilon)
    # Pure epsilon costs at most epsilon^2 / 2 of rho.
    return left.epsilon < epsilon if left.rho is None else left.rho < epsilon**2 / 2
