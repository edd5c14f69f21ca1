"""Projects that take a stream, and the people and workers that move them."""

from itertools import count
from typing import Any

import numpy as np
from django.contrib.auth.models import User

from annotation.data.selectors import waiting_posts
from annotation.data.services import streams as posts
from annotation.models import Membership, Project, Query, Record, Role, WorkState
from annotation.projects.services import opening
from annotation.questions.services import labels, queue
from learner.models import ModelRelease, StreamBatch, TrainingRun
from learner.rounds.services import streams as rounds_streams
from learner.rounds.services import training

CLASSES = ["honest", "fraud"]
COLUMNS = [{"name": name, "low": -1.0, "high": 1.0} for name in ("amount", "hour", "distance")]
# Batches whose times show.
VISIBLE: dict[str, Any] = {
    "update_policy": "flmb",
    "window_length": 50,
    "window_denominator": None,
    "windows_ahead": 1,
    "updates_per_release": 1,
    "text_columns": 32,
    "training_epsilon": 1.3,
    "training_delta": 1e-6,
    "pool_delta": 2e-6,
}
_numbers = count(1)


def open_stream(owner: User, preset: str = "fraud-stream", *, as_shipped: bool = False, **settings: Any) -> Project:
    """Open a stream of table rows that the sign of their amount decides, in visible batches or as shipped."""
    settings = ({} if as_shipped else VISIBLE) | settings
    values = {"data_kind": "table", "columns": COLUMNS, "classes": CLASSES, "maximum_releases": 3} | settings
    return opening.create_project(
        name=f"{preset} {next(_numbers)}", preset=preset, owner=owner, question="Is this fraud?", **values
    )


def rows(number: int, *, seed: int = 1) -> list[dict[str, float]]:
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, size=(number, 3))
    values[:, 0] = np.where(rng.random(number) < 0.5, 1, -1) * rng.uniform(0.3, 1, number)
    return [dict(zip(("amount", "hour", "distance"), row, strict=True)) for row in np.round(values, 4).tolist()]


def truth_of(record: Record) -> int:
    assert record.payload is not None
    return int(record.payload["amount"] > 0)


def answer(project: Project, annotator: User, *, at_most: int = 10**9) -> int:
    """Answer what is open truthfully: the class, or whether the guess is right; return how many those were."""
    Membership.objects.get_or_create(project=project, user=annotator, role=Role.ANNOTATOR)
    answered = 0
    while answered < at_most and (assignment := queue.claim_next(project=project, user=annotator)) is not None:
        query = Query.objects.select_related("record").get(pk=assignment.query_id)
        assert query.record is not None
        truth = truth_of(query.record)
        labels.submit_label(assignment=assignment, choice=truth if query.guess is None else int(truth != query.guess))
        answered += 1
    return answered


def work_off(project: Project) -> None:
    for _ in range(1000):
        rounds_streams.run_stream(project_id=project.pk)
        run = TrainingRun.objects.filter(project=project, state__in=(WorkState.WAITING, WorkState.RUNNING)).first()
        if run is None:
            return
        training.train_model(run_id=str(run.pk))
        run.refresh_from_db()
        if run.state == WorkState.RUNNING:
            return
    raise AssertionError("there is always something to do")


def let_time_pass(project: Project) -> None:
    StreamBatch.objects.filter(stream__project=project).update(closes_at="2020-01-01T00:00:00Z")


def run_to_release(project: Project, annotator: User, *, version: int, records: int = 400) -> ModelRelease:
    for turn in range(500):
        released = ModelRelease.objects.filter(project=project, version=version).first()
        if released is not None:
            return released
        if not waiting_posts(project.pk).exists():
            posts.post_records(project=project, records=rows(records, seed=turn))
        work_off(project)
        answer(project, annotator)
        work_off(project)
    raise AssertionError(f"version {version} was not released")
