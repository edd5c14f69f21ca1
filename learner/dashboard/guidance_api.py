"""The REST route of a project's next step: what it waits for and what a manager can do, as the pages say it."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router

from annotation.models import Project, Role
from annotation.work.reads import Answer, Reads
from annotation.work.rest import SaidOut, as_code, member_project, require_scope
from annotation.work.services.tokens import Scope
from learner.dashboard.guidance import Act, ActKind, button_of, guidance_for
from learner.pools.selectors import question_counts

router = Router()


class ActOut(Answer, reads=Reads.MANAGED):
    """An action of a manager on `page` or by `route`, with the price it has charged; `body` agrees to no higher one."""

    kind: str
    label: str
    page: str
    route: str | None = Field(description="Below `/api/v1/`; null where the act is a page to look at.")
    body: dict[str, Any] | None
    epsilon: float | None
    delta: float | None


class NextStepOut(Answer, reads=Reads.MANAGED):
    """Next step: what is waited for (`waits_for`), where the project stands (`step`), in words, and how it goes on.

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


# What buttons send, by REST: where to below the project, and with which body.
SENT_BY_REST: dict[ActKind, Callable[[str, str], tuple[str, dict[str, Any]]]] = {
    ActKind.TAKE_OUT_OF_ARCHIVE: lambda _subject, _viewer: ("archive", {"archived": False}),
    ActKind.RESUME: lambda _subject, _viewer: ("state", {"state": "active"}),
    ActKind.PAUSE: lambda _subject, _viewer: ("state", {"state": "paused"}),
    ActKind.GATE_AGAIN: lambda dataset, _viewer: (f"datasets/{dataset}/gate", {}),
    ActKind.START_ANEW: lambda row, _viewer: (f"work/{row.replace(' ', '/')}/retry", {}),
    ActKind.CLOSE_BLOCK: lambda _subject, _viewer: ("rounds/block/close", {}),
    ActKind.TRAIN_ON_FEW: lambda _subject, _viewer: ("trainings", {}),
    ActKind.ANSWER_MYSELF: lambda _subject, viewer: ("members", {"username": viewer, "role": "annotator"}),
    ActKind.CHECK_AGAIN: lambda version, _viewer: (f"models/{version}/check", {}),
}
PRICED_BY_REST = (ActKind.GATE_AGAIN, ActKind.START_ANEW, ActKind.CLOSE_BLOCK, ActKind.TRAIN_ON_FEW)


@router.get("projects/{slug:slug}/next-step", response=NextStepOut, summary="What a project waits for")
def get_next_step(request: HttpRequest, slug: str) -> Any:
    require_scope(request, Scope.PROJECTS_READ)
    project = member_project(request, slug, Role.MANAGER)
    guidance = guidance_for(project)
    counts = question_counts(project)
    acts = [(act, button_of(project, act, request.user)) for act in guidance.acts]
    return {
        "step": guidance.status.step.value,
        "status": str(guidance.status.sentence),
        "status_as_code": as_code(guidance.status.sentence),
        "waits_for": guidance.blocker.value,
        "sentence": str(guidance.sentence),
        "sentence_as_code": as_code(guidance.sentence),
        "acts": [
            {
                "kind": act.kind.value,
                "label": press.label,
                "page": press.address,
                **_route(project, act, request.user.get_username()),
                "epsilon": act.price and act.price.epsilon,
                "delta": act.price and act.price.delta,
            }
            for act, press in acts
        ],
        "goes_on_at": guidance.goes_on_at,
        "open": counts.open,
        "done": counts.newly_done,
    }


def _route(project: Project, act: Act, viewer: str) -> dict[str, Any]:
    if act.kind not in SENT_BY_REST:
        return {"route": None, "body": None}
    below, body = SENT_BY_REST[act.kind](act.subject, viewer)
    if act.kind in PRICED_BY_REST and act.price is not None:
        body = body | {"most_epsilon": act.price.epsilon}
    return {"route": f"projects/{project.slug}/{below}", "body": body}
