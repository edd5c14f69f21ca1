"""Rounds and trainings that ended without a result: how often in a row, why, and whether a person may start another."""

from collections.abc import Sequence
from typing import TypeVar

from annotation.models import UNFINISHED, Arrival, Project, ProjectState, WorkState
from learner.models import ModelRelease, ReleaseState, Round, TrainingRun
from learner.pools import prices, records
from learner.pools import stream_answers as stream_selectors
from learner.pools.records import MAX_FAILED_TRAININGS
from learner.pools.selectors import MAX_FAILED_ROUNDS, training_price
from privacy.accounting.cost import Cost
from privacy.wording import as_message, as_plural_message, joined_messages

TriedWork = TypeVar("TriedWork", Round, TrainingRun)


def failed_rounds(project: Project) -> list[Round]:
    """Return the failed rounds since the last good one, newest first, as many as stop a project."""
    return _in_a_row(list(Round.objects.filter(project=project).order_by("-number")[:MAX_FAILED_ROUNDS]))


def failed_trainings(project: Project) -> list[TrainingRun]:
    """Return the failed trainings since the last good one, newest first, as many as stop a project."""
    newest = TrainingRun.objects.filter(project=project, block=None, stream_batches=None).order_by("-created_at")
    return _in_a_row(list(newest[:MAX_FAILED_TRAININGS]))


def _in_a_row(newest: list[TriedWork]) -> list[TriedWork]:
    good = next((place for place, row in enumerate(newest) if row.state != WorkState.FAILED), len(newest))
    return newest[:good]


def failed_words(failed: Sequence[Round | TrainingRun]) -> str:
    if isinstance(failed[0], Round):
        return as_plural_message(
            "Choosing questions failed {n} time: {reason}",
            "Choosing questions failed {n} times: {reason}",
            n=len(failed),
            reason=failed[0].error,
        )
    return as_plural_message(
        "Training version {version} failed {n} time: {reason}",
        "Training version {version} failed {n} times: {reason}",
        n=len(failed),
        version=failed[0].version,
        reason=failed[0].error,
    )


def stopping_words(project: Project, kind: type[Round] | type[TrainingRun]) -> str:
    """Say why nothing starts the next round or training by itself; empty where something does."""
    newest = _newest(project, kind)
    if isinstance(newest, TrainingRun) and newest.block is not None and not _block_is_due(project, newest):
        # It belongs to a block that was given up; the one that is due now has none yet.
        return ""
    if newest is not None and newest.state == WorkState.FAILED and newest.cancelled_by:
        return joined_messages(" ", [newest.error, as_message("A manager can restart it on the dashboard.")])
    failed: Sequence[Round | TrainingRun]
    if kind is Round:
        failed, most = failed_rounds(project), MAX_FAILED_ROUNDS
    else:
        failed, most = failed_trainings(project), MAX_FAILED_TRAININGS
    return failed_words(failed) if len(failed) >= most else ""


def may_start_anew(project: Project, row: Round | TrainingRun) -> bool:
    """Say whether a round or training that ended without a result is the newest of its kind and nothing else runs."""
    if row.state != WorkState.FAILED or project.state != ProjectState.ACTIVE:
        return False
    kinds = (Round, TrainingRun)
    if any(kind.objects.filter(project=project, state__in=UNFINISHED).exists() for kind in kinds):
        return False
    newest = _newest(project, type(row))
    if newest is None or newest.pk != row.pk:
        return False
    if project.arrival == Arrival.STREAM:
        return _is_stuck_release(project, row)
    if records.labels_in_secret(project) and not _block_is_due(project, row):
        return False
    return not ModelRelease.objects.filter(project=project, state=ReleaseState.CANDIDATE).exists()


def start_anew_of(project: Project) -> Round | TrainingRun | None:
    rows = [row for row in (_newest(project, Round), _newest(project, TrainingRun)) if row is not None]
    return next((row for row in sorted(rows, key=_begun, reverse=True) if may_start_anew(project, row)), None)


def price_of(project: Project, row: Round | TrainingRun) -> Cost | None:
    if isinstance(row, Round):
        return prices.round_price(project)
    return None if project.arrival == Arrival.STREAM else training_price(project)


def _begun(row: Round | TrainingRun) -> float:
    return row.created_at.timestamp()


def _newest(project: Project, kind: type[Round] | type[TrainingRun]) -> Round | TrainingRun | None:
    rows: list[Round | TrainingRun] = list(kind.objects.filter(project=project).order_by("-created_at", "-pk")[:1])
    return rows[0] if rows else None


def _is_stuck_release(project: Project, row: Round | TrainingRun) -> bool:
    """Say whether a version of a stream failed so often that nothing tries it again but a person."""
    failed = stream_selectors.failed_releases(project)
    return isinstance(row, TrainingRun) and failed >= stream_selectors.MAX_FAILED_RELEASES


def _block_is_due(project: Project, row: Round | TrainingRun) -> bool:
    """Say whether a secret block still has to give the model of `row`, or to be opened."""
    block = records.current_block(project)
    if isinstance(row, TrainingRun):
        return block is not None and row.block_id == block.pk
    return block is None and records.next_block(project) is not None
