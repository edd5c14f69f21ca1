"""One piece of work as an address names it: stopped, started anew, and what that has charged."""

from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import Http404
from django.shortcuts import get_object_or_404

from annotation import retrying
from annotation.models import Job, Project
from annotation.work.services import attempts
from learner.dashboard.tables import price_of_job
from learner.models import Round, TrainingRun
from learner.rounds import failures
from learner.rounds.services import loop
from privacy.accounting.cost import Cost

KINDS: dict[str, type[Job] | type[Round] | type[TrainingRun]] = {"job": Job, "round": Round, "training": TrainingRun}


def found_work(project: Project, kind: str, key: str) -> Job | Round | TrainingRun:
    if kind not in KINDS:
        raise Http404
    try:
        found: Any = get_object_or_404(KINDS[kind], project=project, pk=key)
    except (ValidationError, ValueError):
        raise Http404 from None
    assert isinstance(found, Job | Round | TrainingRun)
    return found


def ask_to_stop(row: Job | Round | TrainingRun, *, by: User) -> bool:
    return getattr(row, "stream_batches", None) is None and attempts.cancel_work(row=row, by=by.get_username())


def start_once_more(row: Job | Round | TrainingRun, *, owner: User) -> Job | Round | TrainingRun | None:
    """Start work that ended without a result anew; None where there is nothing to start."""
    return retrying.retry_job(job=row, owner=owner) if isinstance(row, Job) else loop.start_anew(row=row)


def retry_price(project: Project, row: Job | Round | TrainingRun) -> Cost | None:
    """Return what starting it anew has charged, as its button says; None where that is nothing."""
    if isinstance(row, Job):
        return price_of_job(row, getattr(row, "dataset", None) or getattr(row, "gated_dataset", None))
    return failures.price_of(project, row)
