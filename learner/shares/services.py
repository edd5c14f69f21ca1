"""Ask for shares of classes, and count them: reserve, read, commit with what is released."""

import hashlib
import json
from typing import Any
from uuid import UUID

import numpy as np
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from django.db.models.fields.json import KeyTextTransform
from numpy.typing import NDArray

from annotation.models import Dataset, Project, Record
from annotation.work.services import jobs
from annotation.work.services.attempts import finish_work
from learner.errors import SharesRefused
from learner.estimators import abstaining
from learner.linear_model import LinearModel
from learner.models import Grouping, SharesReport
from learner.pools import attempts, features, records
from learner.pools.configuration import learned_numbers
from learner.pools.keys import MEASURE_SHARES, attempt_key
from learner.releases.services.card_issues import issue_with_thresholds
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
from privacy.wording import as_message, in_english

Numbers = NDArray[np.int64]
ROWS_AT_ONCE = 65_536
TOO_DEAR = as_message("The account cannot pay for these shares.")


def ask_shares(*, project: Project, block: int, grouping: Grouping, actor: User, column: str = "") -> SharesReport:
    """Order the shares that a block's labels show; all that is written here is public and fixed before any is read."""
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if why := selectors.refusal(locked):
            raise SharesRefused(why)
        if selectors.is_busy(locked):
            raise SharesRefused(as_message("A training or measurement is running; try again later."))
        offer = selectors.offer_of(locked, block=block, grouping=grouping, column=column)
        if offer is None:
            raise SharesRefused(in_english("No such block with a model."))
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
            column=column,
            groups=offer.groups_json,
            rate=offer.rate,
            accuracy=None if offer.pool is None else offer.accuracy,
            events=_events_json(offer),
            asked_by=actor.get_username(),
        )
        jobs.send_on_commit()
        jobs.send_project_changed(locked.pk)
    return report


def measure_shares(*, report_id: UUID | str) -> None:
    """Count what was asked for; an attempt that dies stays charged, and the next one reserves once more."""
    report = SharesReport.objects.select_related("project__pool_account", "block", "release").get(pk=report_id)
    with attempts.charged_attempt(report) as lease:
        if lease is None:
            return
        project, account = report.project, report.project.pool_account
        offer = selectors.offer_of(
            project, block=report.block.block or 0, grouping=Grouping(report.grouping), column=report.column
        )
        if offer is None or not _is_as_asked(report, offer):
            raise SharesRefused(as_message("The project has changed; ask again."))
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
            held = [reservation] if pool_entry is None else [pool_entry, reservation]
            entries = [ledger.commit(reservation=each, output_digest=digest) for each in held]
            finish_work(row=report, committed_entry=entries[-1], counts=counts, events=_events_json(offer))
            if offer.grouping == Grouping.CONFIDENCE and report.release is not None:
                issue_with_thresholds(release=report.release, entries=entries)
            jobs.send_project_changed(project.pk)
            fault_point("shares_finished")


def _events_json(offer: Offer) -> dict[str, Any]:
    events = {"sample": offer.sample.to_json()}
    return events if offer.pool is None else events | {"pool": offer.pool.to_json()}


def _is_as_asked(report: SharesReport, offer: Offer) -> bool:
    """Say whether public facts are those of the ask; only the count of releases before may have grown."""
    return (
        offer.groups_json == report.groups
        and list(offer.classes) == report.classes
        and offer.release == report.release
        and (offer.pool is not None) == ("pool" in report.events)
    )


def _released(project: Project, offer: Offer) -> dict[str, list[float]]:
    """Return the noisy counts: all that leaves the records."""
    datasets, groups = offer.datasets, _groups_of_rows(offer)
    rng, k = SecureRandom(), len(offer.classes)
    model, pool = offer.model, offer.pool
    inner = offer.sample.inner
    assert isinstance(inner, ClassCountsEvent)
    sampled, labels = _sampled(project, offer, datasets)
    counts: dict[str, list[float]] = {}
    queries: Queries
    if model is None or pool is None:
        queries = mechanism.count_query(
            "sample", lambda: mechanism.label_cells(labels, groups[sampled.rows], n_classes=k), inner, rng=rng
        )
    else:
        sure, predicted = _said(datasets, model)

        def pool_cells() -> Numbers:
            if offer.grouping == Grouping.CONFIDENCE:
                cells = sure[:, np.newaxis].copy()
            else:
                cells = mechanism.predicted_cells(predicted, groups, n_classes=k)
            # An emptied slot is the dummy of the promise, and counts nowhere.
            first = 0
            for dataset in datasets:
                cells[first + features.empty_slots(dataset)] = mechanism.NOWHERE
                first += dataset.row_count
            return cells

        def sample_cells() -> Numbers:
            rows = sampled.rows
            if offer.grouping == Grouping.CONFIDENCE:
                firsts = abstaining.bins(np.array(counts["pool"]))
                return abstaining.outcome_cells(sure[rows], predicted[rows] == labels, firsts)
            return mechanism.compared_cells(labels, predicted[rows], groups[rows], n_classes=k)

        queries = {
            **mechanism.count_query("pool", pool_cells, pool, rng=rng),
            **mechanism.count_query("sample", sample_cells, inner, rng=rng),
        }
    session = MeasuringSession(queries)
    for name in queries:
        counts[name] = session.ask(name).tolist()
    return counts


def _groups_of_rows(offer: Offer) -> Numbers:
    """Return the place of each stacked record's group."""
    if offer.grouping != Grouping.COLUMN:
        of_dataset = {each.pk: place for place, group in enumerate(offer.groups) for each in group.datasets}
        sizes = [dataset.row_count for dataset in offer.datasets]
        return np.repeat([of_dataset[dataset.pk] for dataset in offer.datasets], sizes).astype(np.int64)
    places = {group.name: place for place, group in enumerate(offer.groups[:-1])}
    found = []
    for dataset in offer.datasets:
        kept = Record.objects.filter(dataset=dataset).order_by("row_number")
        values = kept.values_list(KeyTextTransform(offer.column, "payload")).iterator(chunk_size=ROWS_AT_ONCE)
        found.append(np.array([places.get(value, len(places)) for (value,) in values], dtype=np.int64))
    return np.concatenate(found)


def _sampled(project: Project, offer: Offer, datasets: list[Dataset]) -> tuple[records.SampledRecords, Numbers]:
    """Return the sampled records with their labels; one without an agreed answer has the number after all classes."""
    sampled = records.sampled_records(project, offer.block, datasets)
    labels = np.full(len(sampled.choices), len(offer.classes), dtype=np.int64)
    known = sampled.choices >= 0
    labels[known] = learned_numbers(project, sampled.choices[known])
    return sampled, labels


def _said(datasets: list[Dataset], model: LinearModel) -> tuple[Numbers, Numbers]:
    """Return the cell of each record's confidence, and its predicted class."""
    X = features.stacked_features(datasets, dimension=model.coef.shape[1])
    cells, predicted = [], []
    for start in range(0, sum(dataset.row_count for dataset in datasets), ROWS_AT_ONCE):
        values = model.decision_function(np.asarray(X[start : start + ROWS_AT_ONCE]))
        cells.append(abstaining.confidence_cells(model.probabilities(values)))
        predicted.append(np.asarray(model.leaders(values), dtype=np.int64))
    return np.concatenate(cells), np.concatenate(predicted)
