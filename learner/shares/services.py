"""Ask for shares of classes, and count them: reserve, read, commit with what is released."""

import hashlib
import json
from typing import Any
from uuid import UUID

import numpy as np
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from numpy.typing import NDArray

from annotation.models import Dataset, Project
from annotation.work.services import jobs
from annotation.work.services.attempts import finish_work
from annotation.work.services.sending import send_on_commit
from learner.errors import SharesRefused
from learner.linear_model import LinearModel
from learner.models import Grouping, SharesReport
from learner.pools import attempts, features, records
from learner.pools.configuration import learned_numbers
from learner.pools.keys import MEASURE_SHARES, MEASURE_SHARES_TASK, attempt_key
from learner.shares import selectors
from learner.shares.selectors import Offer
from privacy.accounting.events import ClassCountsEvent
from privacy.errors import BudgetExceeded
from privacy.ledger import services as ledger
from privacy.ledger.faults import fault_point
from privacy.ledger.selectors import can_pay
from privacy.mechanisms import shares as mechanism
from privacy.mechanisms.randomness import SecureRandom
from privacy.mechanisms.session import MeasuringSession, Queries
from privacy.wording import as_message

Numbers = NDArray[np.int64]
ROWS_AT_ONCE = 65_536
TOO_DEAR = as_message("The account cannot pay for these shares.")


def ask_shares(*, project: Project, block: int, grouping: Grouping, actor: User) -> SharesReport:
    """Order the shares that a block's labels show; all that is written here is public and fixed before any is read."""
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if why := selectors.refusal(locked):
            raise SharesRefused(why)
        if selectors.is_busy(locked):
            raise SharesRefused(as_message("A training or another count is going on; ask again when it is done."))
        offer = selectors.offer_of(locked, block=block, grouping=grouping)
        if offer is None:
            raise SharesRefused(as_message("There is no such block with a model."))
        if not offer.can_pay:
            raise BudgetExceeded(TOO_DEAR)
        last = SharesReport.objects.filter(project=locked).aggregate(number=Max("number"))["number"] or 0
        report = SharesReport.objects.create(
            project=locked,
            number=last + 1,
            block=offer.block,
            release=offer.release,
            classes=list(offer.classes),
            grouping=grouping,
            groups=[
                {"name": group.name, "datasets": [dataset.pk for dataset in group.datasets]} for group in offer.groups
            ],
            rate=offer.rate,
            accuracy=None if offer.pool is None else offer.accuracy,
            events=_events_json(offer),
            asked_by=actor.get_username(),
        )
        send_on_commit(MEASURE_SHARES_TASK, report_id=str(report.pk))
        jobs.send_project_changed(locked.pk)
    return report


def measure_shares(*, report_id: UUID | str) -> None:
    """Count what was asked for; an attempt that dies stays charged, and the next one reserves once more."""
    report = SharesReport.objects.select_related("project__pool_account", "block", "release").get(pk=report_id)
    with attempts.charged_attempt(report) as lease:
        if lease is None:
            return
        project, account = report.project, report.project.pool_account
        offer = selectors.offer_of(project, block=report.block.block or 0, grouping=Grouping(report.grouping))
        if offer is None or not _is_as_asked(report, offer):
            raise SharesRefused(as_message("The project has changed since; ask again."))
        features.find_room(project)
        if not can_pay(account, offer.events):
            raise BudgetExceeded(TOO_DEAR)
        pool_entry = None
        if offer.pool is not None:
            pool_entry = ledger.reserve(
                account=account,
                event=offer.pool,
                purpose=MEASURE_SHARES,
                key=attempt_key(report, report.attempt, part=attempts.POOL_PART),
                subject=attempts.attempt_subject(report),
            )
        reservation = attempts.reserve_attempt(report, account=account, event=offer.sample, purpose=MEASURE_SHARES)
        lease.check()
        counts = _released(project, offer)
        fault_point("shares_counted")
        lease.check()
        public = {"shares": report.number, "events": _events_json(offer), "counts": counts}
        digest = hashlib.sha256(json.dumps(public, sort_keys=True).encode()).hexdigest()
        with transaction.atomic():
            if pool_entry is not None:
                ledger.commit(reservation=pool_entry, output_digest=digest)
            entry = ledger.commit(reservation=reservation, output_digest=digest)
            finish_work(row=report, committed_entry=entry, counts=counts, events=_events_json(offer))
            jobs.send_project_changed(project.pk)
            fault_point("shares_finished")


def _events_json(offer: Offer) -> dict[str, Any]:
    events = {"sample": offer.sample.to_json()}
    return events if offer.pool is None else events | {"pool": offer.pool.to_json()}


def _is_as_asked(report: SharesReport, offer: Offer) -> bool:
    """Say whether public facts are those of the ask; only the count of releases before may have grown."""
    groups = [[dataset.pk for dataset in group.datasets] for group in offer.groups]
    return (
        groups == [group["datasets"] for group in report.groups]
        and list(offer.classes) == report.classes
        and offer.release == report.release
        and (offer.pool is not None) == ("pool" in report.events)
    )


def _released(project: Project, offer: Offer) -> dict[str, list[float]]:
    """Return the noisy counts: all that leaves the records."""
    datasets = [dataset for group in offer.groups for dataset in group.datasets]
    rng, k = SecureRandom(), len(offer.classes)
    of_dataset = np.repeat(np.arange(len(offer.groups)), [len(group.datasets) for group in offer.groups])
    order = np.argsort([dataset.pk for dataset in datasets])
    datasets, of_dataset = [datasets[place] for place in order], of_dataset[order]
    model, pool = offer.model, offer.pool
    inner = offer.sample.inner
    assert isinstance(inner, ClassCountsEvent)
    queries: Queries
    if model is None or pool is None:
        queries = mechanism.count_query(
            "sample", lambda: _label_cells(project, offer, datasets, of_dataset), inner, rng=rng
        )
        session = MeasuringSession(queries)
        return {"sample": session.ask("sample").tolist()}
    rows_of = np.repeat(of_dataset, [dataset.row_count for dataset in datasets])
    X = features.stacked_features(datasets, dimension=model.coef.shape[1])
    predicted = np.concatenate(
        [_predicted(X[start : start + ROWS_AT_ONCE], model) for start in range(0, len(rows_of), ROWS_AT_ONCE)]
    )

    def pool_cells() -> Numbers:
        cells = mechanism.predicted_cells(predicted, rows_of, n_classes=k)
        # An emptied slot is the dummy of the promise, and counts nowhere.
        first = 0
        for dataset in datasets:
            cells[first + features.empty_slots(dataset)] = mechanism.NOWHERE
            first += dataset.row_count
        return cells

    def compared_cells() -> Numbers:
        sampled, labels = _sampled(project, offer, datasets)
        groups = of_dataset[sampled.places]
        return mechanism.compared_cells(labels, predicted[sampled.rows], groups, n_classes=k)

    queries = {
        **mechanism.count_query("pool", pool_cells, pool, rng=rng),
        **mechanism.count_query("sample", compared_cells, inner, rng=rng),
    }
    session = MeasuringSession(queries)
    return {name: session.ask(name).tolist() for name in queries}


def _label_cells(project: Project, offer: Offer, datasets: list[Dataset], of_dataset: Numbers) -> Numbers:
    sampled, labels = _sampled(project, offer, datasets)
    return mechanism.label_cells(labels, of_dataset[sampled.places], n_classes=len(offer.classes))


def _sampled(project: Project, offer: Offer, datasets: list[Dataset]) -> tuple[records.SampledRecords, Numbers]:
    """Return the sampled records with their labels; one without an agreed answer has the number after all classes."""
    sampled = records.sampled_records(project, offer.block, datasets)
    labels = np.full(len(sampled.choices), len(offer.classes), dtype=np.int64)
    known = sampled.choices >= 0
    labels[known] = learned_numbers(project, sampled.choices[known])
    return sampled, labels


def _predicted(rows: NDArray[np.float32], model: LinearModel) -> Numbers:
    return np.asarray(model.leaders(model.decision_function(np.asarray(rows))), dtype=np.int64)
