"""One piece of work as an address names it, and what starting it anew has charged."""

from typing import Any

from django.core.exceptions import ValidationError
from django.http import Http404
from django.shortcuts import get_object_or_404

from annotation.models import Job, Project
from learner import failures
from learner.dashboard.tables import price_of_job
from learner.models import Round, TrainingRun
from privacy.accounting.cost import Cost

KINDS: dict[str, type[Job] | type[Round] | type[TrainingRun]] = {"job": Job, "round": Round, "training": TrainingRun}


def found_work(project: Project, kind: str, key: str) -> Job | Round | TrainingRun:
    """Return the project's work of this kind and id; `Http404` where there is none."""
    if kind not in KINDS:
        raise Http404
    try:
        found: Any = get_object_or_404(KINDS[kind], project=project, pk=key)
    except (ValidationError, ValueError):
        raise Http404 from None
    assert isinstance(found, Job | Round | TrainingRun)
    return found


def retry_price(project: Project, row: Job | Round | TrainingRun) -> Cost | None:
    """Return what starting it anew has charged, as its button says; None where that is nothing."""
    if isinstance(row, Job):
        return price_of_job(row, getattr(row, "dataset", None) or getattr(row, "gated_dataset", None))
    return failures.price_of(project, row)
