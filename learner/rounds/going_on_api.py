"""REST routes by which a manager has a project go on: a secret block closed early, a model trained on few questions."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status

from annotation.models import Role
from annotation.rest.base import MostIn, project_for, require_scope
from annotation.rest.idempotency import idempotent
from annotation.rest.responses import write_responses
from annotation.statement import charges
from annotation.tokens.services import Scope
from learner.rounds.services import loop, secret_blocks
from learner.selectors import training_price

router = Router()


class ClosedBlockOut(Schema):
    """A secret block that was closed, and what the model that is trained now has charged."""

    block: int
    closes_at: datetime
    epsilon: float
    delta: float


class TrainingOut(Schema):
    """A version that is being trained, and what that has charged."""

    version: int
    state: str
    epsilon: float
    delta: float


@router.post(
    "projects/{slug:slug}/rounds/block/close",
    response=ClosedBlockOut,
    summary="Close the open secret block before its time; what is not agreed on by then counts as empty",
    openapi_extra=write_responses(200, problems=(409,)),
)
@idempotent
def close_block(request: HttpRequest, slug: str, body: MostIn) -> Any:
    require_scope(request, Scope.PROJECTS_WRITE)
    project = project_for(request, slug, Role.MANAGER)
    price = training_price(project)
    charges.refuse_dearer(price, body.most_epsilon)
    block = secret_blocks.close_block(project=project)
    return {"block": block.block, "closes_at": block.closes_at, "epsilon": price.epsilon, "delta": price.delta}


@router.post(
    "projects/{slug:slug}/trainings",
    response={202: TrainingOut},
    summary="Train on what is there although it is less than the project declares for a model",
    openapi_extra=write_responses(202, problems=(409,)),
)
@idempotent
def train_on_few(request: HttpRequest, slug: str, body: MostIn) -> Any:
    require_scope(request, Scope.PROJECTS_WRITE)
    project = project_for(request, slug, Role.MANAGER)
    price = training_price(project)
    charges.refuse_dearer(price, body.most_epsilon)
    run = loop.train_on_few(project=project)
    return Status(202, {"version": run.version, "state": run.state, "epsilon": price.epsilon, "delta": price.delta})
