"""Hold a site's database against what it acknowledged, given as JSON; prints what differs and what there is."""

import io
import json
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import django

django.setup()

from django.core.files.storage import default_storage  # noqa: E402 - needs the line above
from django.core.management import CommandError, call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.models import Count, F, Q, Sum  # noqa: E402

from annotation.data.services import pool_files, retention  # noqa: E402
from annotation.models import (  # noqa: E402
    Assignment,
    Dataset,
    GateRun,
    Job,
    Label,
    Project,
    Query,
    QueryState,
    Record,
    RecordPost,
    Selection,
    SourceFile,
    WorkState,
)
from learner.models import ModelRelease, Round, Stream, StreamBatch, TrainingRun  # noqa: E402
from learner.releases.artifacts.files import verify_manifest  # noqa: E402
from privacy.ledger.models import SETTLEMENTS, BudgetAccount, EntryKind, LedgerEntry  # noqa: E402

ENDED = (WorkState.DONE, WorkState.FAILED)
QUEUE_SUMS = """
SELECT query.id FROM annotation_query query
LEFT JOIN annotation_assignment held ON held.query_id = query.id AND held.state IN ('leased', 'labelled')
WHERE query.state = 'open'
GROUP BY query.id HAVING query.open_slots + count(held.id) <> query.overlap
"""


def labels(told: list[dict[str, Any]]) -> list[str]:
    stored = {str(row.assignment_id): row for row in Label.objects.filter(superseded_at=None)}
    wrong = [
        f"label {each['label']} of assignment {each['assignment']} was acknowledged and is not there"
        for each in told
        if (row := stored.get(each["label"])) is None
        or (each["label"], row.choice) != (each["assignment"], each["choice"])
    ]
    acknowledged = {each["assignment"] for each in told}
    if len(acknowledged) != len(told):
        wrong.append(f"{len(told) - len(acknowledged)} labels were acknowledged twice")
    wrong += [f"assignment {key} has a label nobody was told of" for key in stored.keys() - acknowledged]
    if Label.objects.count() != len(stored):
        wrong.append(f"{Label.objects.count() - len(stored)} labels were superseded, and nobody undid any")
    return wrong


def queue() -> list[str]:
    answered = Query.objects.annotate(answers=Count("labels", filter=Q(labels__superseded_at=None)))
    wrong = [f"question {pk} has too many answers" for pk in _keys(answered.filter(answers__gt=F("overlap")))]
    closed = answered.filter(state=QueryState.CLOSED)
    wrong += [f"question {pk} is closed without consensus" for pk in _keys(closed.filter(consensus=None))]
    complete = answered.filter(state=QueryState.OPEN, answers__gte=F("overlap"))
    wrong += [f"question {pk} has all its answers and is open" for pk in _keys(complete)]
    with connection.cursor() as cursor:
        cursor.execute(QUEUE_SUMS)
        wrong += [f"question {pk} has lost or gained a slot" for (pk,) in cursor.fetchall()]
    return wrong


def uploads(told: list[dict[str, Any]], staged: int) -> list[str]:
    """Every acknowledged upload once, whole or refused with nothing of it; no upload that was not acknowledged."""
    wrong = []
    rows = dict(Record.objects.values_list("dataset").annotate(n=Count("pk")).order_by())
    found = {row.pk: row for row in Dataset.objects.select_related("job").exclude(name="stream")}
    # Of a pool in columns every file is read, and its bytes held against their digest.
    for dataset in Dataset.objects.filter(pool_parts__isnull=False).distinct():
        read = sum(batch.num_rows for batch in pool_files.records(dataset))
        rows[dataset.pk] = rows.get(dataset.pk, 0) + read
    # Of a registered table nothing but its catalogue is stored.
    rows |= dict(SourceFile.objects.values_list("source").annotate(n=Sum("row_count")).order_by())
    for each in told:
        dataset = found.get(each["dataset"])
        if dataset is None:
            wrong.append(f"upload {each['dataset']} was acknowledged and is not there")
            continue
        stored = rows.get(dataset.pk, 0)
        whole = dataset.state == "ready" and stored == dataset.row_count == each["rows"]
        refused = dataset.state == "refused" and not stored and dataset.job.error
        if not (whole or refused) or (refused and each["rows"] and "stopped" not in dataset.job.error):
            wrong.append(f"upload {dataset.pk} is {dataset.state} with {stored} of {each['rows']}: {dataset.job.error}")
    if len(found) - staged != len(told):
        wrong.append(f"{len(found) - staged} uploads are stored, {len(told)} were acknowledged")
    return wrong


def files() -> list[str]:
    """No file as sent stays: it names contributors, and whoever received it may have died before it was stored."""
    retention.forget_unowned_files(older_than=timedelta(0))
    root = Path(default_storage.path("datasets"))
    folders = [root / str(pk) for pk in _keys(Project.objects.all())]
    return [f"file {path} belongs to nothing" for folder in folders for path in folder.rglob("upload*")]


def stream(told: list[dict[str, Any]]) -> list[str]:
    wrong = []
    slots = Counter(slot for each in told for slot in range(each["first"], each["first"] + each["records"]))
    if any(times > 1 for times in slots.values()):
        wrong.append("a slot of the stream was given twice")
    posted = RecordPost.objects.aggregate(n=Sum("record_count", default=0))["n"]
    if len(slots) != posted or set(slots) != set(range(posted)):
        wrong.append(f"{posted} records of the stream are stored, {len(slots)} were acknowledged")
    for each in Stream.objects.all():
        examined = Record.objects.filter(dataset__project=each.project_id, dataset__name="stream")
        if list(examined.order_by("row_number").values_list("row_number", flat=True)) != list(range(each.next_slot)):
            wrong.append(f"the stream was examined up to {each.next_slot} and keeps {examined.count()} records")
        numbers = list(StreamBatch.objects.filter(stream=each).order_by("number").values_list("number", flat=True))
        if numbers != list(range(1, each.batches_closed + 1)):
            wrong.append("batches of the stream are missing or doubled")
    return wrong


def work() -> list[str]:
    wrong = []
    for model in (Job, Round, TrainingRun):
        name = model._meta.model_name
        wrong += [f"{name} {pk} has not ended" for pk in _keys(model._default_manager.exclude(state__in=ENDED))]
        silent = model._default_manager.filter(state=WorkState.FAILED, error="")
        wrong += [f"{name} {pk} failed without a reason" for pk in _keys(silent)]
    wrong += [f"gate run {pk} still runs" for pk in _keys(GateRun.objects.filter(state="running"))]
    return wrong


def releases() -> list[str]:
    wrong = []
    unreleased = TrainingRun.objects.filter(state=WorkState.DONE, release=None)
    wrong += [f"training {pk} is done and has no release" for pk in _keys(unreleased)]
    for release in ModelRelease.objects.select_related("entry"):
        if verify_manifest(Path(default_storage.path(release.folder))) != release.digests:
            wrong.append(f"release {release.pk} has other files than were committed")
        if release.entry.kind not in (EntryKind.COMMIT, EntryKind.POST_PROCESSING):
            wrong.append(f"release {release.pk} was not paid for")
    for round_ in Round.objects.filter(state=WorkState.DONE).exclude(strategy=Selection.REPEAT_VOTES):
        asked = Query.objects.filter(project=round_.project_id, round_number=round_.number).count()
        if asked != round_.selected:
            wrong.append(f"round {round_.pk} chose {round_.selected} and asked {asked}")
    return wrong


def ledger() -> list[str]:
    reserved = LedgerEntry.objects.filter(kind=EntryKind.RESERVE)
    open_ones = reserved.exclude(children__kind__in=SETTLEMENTS)
    wrong = [f"reservation {entry.pk} ({entry.purpose}) is not settled" for entry in open_ones]
    said = io.StringIO()
    try:
        call_command("audit_ledger", stdout=said)
    except CommandError as error:
        wrong.append(f"{error}\n{said.getvalue()}")
    standing = reserved.exclude(children__kind=EntryKind.VOID)
    for account in BudgetAccount.objects.all():
        spent = standing.filter(account=account).aggregate(n=Sum("epsilon_nano", default=0), d=Sum("delta_atto"))
        last = account.entries.order_by("-sequence").first()
        if last is not None and account.filter == "pure":
            told = (last.epsilon_spent_nano + last.epsilon_reserved_nano, last.delta_spent_atto)
            if told[0] != spent["n"]:
                wrong.append(f"account {account.pk} says {told[0]} nano are spent, its entries say {spent['n']}")
    return wrong


def _keys(rows: Any) -> list[Any]:
    return list(rows.values_list("pk", flat=True))


def summary() -> dict[str, Any]:
    failed = [
        f"{model._meta.model_name}: {error}"
        for model in (Job, Round, TrainingRun)
        for error in model._default_manager.filter(state=WorkState.FAILED).values_list("error", flat=True)
    ]
    return {
        "labels": Label.objects.count(),
        "assignments": Assignment.objects.count(),
        "uploads": Dataset.objects.exclude(name="stream").count(),
        "records": Record.objects.count(),
        "rounds": Round.objects.count(),
        "attempts": {
            model._meta.model_name: model._default_manager.aggregate(n=Sum("attempt"))["n"]
            for model in (Job, Round, TrainingRun)
        },
        "releases": ModelRelease.objects.count(),
        "ledger entries": LedgerEntry.objects.count(),
        "charged": LedgerEntry.objects.filter(kind=EntryKind.CHARGE).count(),
        "failed": dict(Counter(failed)),
    }


def judge(told: dict[str, Any]) -> dict[str, Any]:
    wrong = labels(told["labels"]) + queue() + uploads(told["uploads"], told["staged"]) + files()
    wrong += stream(told["posts"]) + work() + releases() + ledger()
    return {"wrong": wrong, "summary": summary()}


if __name__ == "__main__":
    json.dump(judge(json.load(sys.stdin)), sys.stdout)
