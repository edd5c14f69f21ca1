"""The REST route of a project's next step: what it waits for and what a manager can do, as the pages say it."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema

from annotation import selectors
from annotation.models import Role
from annotation.people.services.tokens import Scope
from annotation.rest.base import require_scope
from annotation.rest.responses import SaidOut, as_code
from learner.presses import press_of
from learner.selectors import question_counts
from learner.way_on import way_on

router = Router()


class ActOut(Schema):
    """Something a manager can do: `page` shows it or takes it, `epsilon` and `delta` are what it has charged."""

    kind: str
    label: str
    page: str
    epsilon: float | None
    delta: float | None


class NextStepOut(Schema):
    """What a project waits for (`waits_for`), where it stands (`step`), both in words, and what moves it on.

    The counts are those of the overview: questions that are open, and how many were done for the next model. Where
    samples are secret they stay inside, like everything here. `goes_on_at` is when it goes on by itself, if known.
    """

    step: str
    status: str
    status_as_code: SaidOut | None
    waits_for: str
    sentence: str
    sentence_as_code: SaidOut | None
    acts: list[ActOut]
    goes_on_at: datetime | None
    open: int
    done: int


@router.get("projects/{slug:slug}/next-step", response=NextStepOut, summary="What a project waits for")
def get_next_step(request: HttpRequest, slug: str) -> Any:
    require_scope(request, Scope.PROJECTS_READ)
    project = get_object_or_404(selectors.projects_of(request.user, roles=(Role.MANAGER,)), slug=slug)
    way = way_on(project)
    counts = question_counts(project)
    acts = [(act, press_of(project, act, request.user)) for act in way.acts]
    return {
        "step": way.status.step.value,
        "status": str(way.status.sentence),
        "status_as_code": as_code(way.status.sentence),
        "waits_for": way.blocker.value,
        "sentence": str(way.sentence),
        "sentence_as_code": as_code(way.sentence),
        "acts": [
            {
                "kind": act.kind.value,
                "label": press.label,
                "page": press.address,
                "epsilon": act.price and act.price.epsilon,
                "delta": act.price and act.price.delta,
            }
            for act, press in acts
        ],
        "goes_on_at": way.goes_on_at,
        "open": counts.open,
        "done": counts.newly_done,
    }
