"""The REST route of the plan: what a project's accounts still buy; the simulation of accuracy is the page's."""

from typing import Annotated, Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema

from annotation import selectors
from annotation.models import Role
from annotation.people.services.tokens import Scope
from annotation.rest.base import require_scope
from learner.planning.plan_setups import default_records, purchase_of

router = Router()
FEWEST, MOST = 20, 10**8
Records = Annotated[
    int | None,
    Query(ge=FEWEST, le=MOST, description="Records to plan for: your own guess, since no upload is looked at."),
]


class PlanOut(Schema):
    """What the accounts buy as they stand, if people answer all they are asked and agree.

    `uploads` is how many the gate can take, null without one; `label_limit` how many answers may be paid, null without
    a limit; `choosing`, `training` and `whole` are epsilons: of all choosing, of one training, and of a whole stream
    where there is one.
    """

    records: int
    uploads: int | None
    releases: int
    rounds: int
    labels: int
    questions: int
    label_limit: int | None
    choosing: float
    training: float
    whole: float | None


@router.get("projects/{slug:slug}/plan", response=PlanOut, summary="What the accounts still buy")
def get_plan(request: HttpRequest, slug: str, records: Records = None) -> Any:
    require_scope(request, Scope.LEDGER_READ)
    project = get_object_or_404(selectors.projects_of(request.user, roles=(Role.MANAGER,)), slug=slug)
    return purchase_of(project, records or default_records(project))
