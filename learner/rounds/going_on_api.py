"""REST routes by which a manager has a project go on: a secret block closed early, a model trained on few questions."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest

from annotation.budget import charges
from annotation.models import Role
from annotation.work.reads import Answer, Reads
from annotation.work.rest import MostIn, RoomRouter, project_for
from annotation.work.services.tokens import Scope
from learner.pools.selectors import training_price
from learner.rounds.services import loop, selection

router = RoomRouter()


class ClosedBlockOut(Answer, reads=Reads.MANAGED):
    """A secret block that was closed, and what the model that is trained now has charged."""

    block: int
    closes_at: datetime
    epsilon: float
    delta: float


class TrainingOut(Answer, reads=Reads.MANAGED):
    """A version that is being trained, and what that has charged."""

    version: int
    state: str
    epsilon: float
    delta: float


@router.write(
    "projects/{slug:slug}/rounds/block/close",
    response=ClosedBlockOut,
    summary="Close the open secret block before its time; what is not agreed on by then counts as empty",
)
def close_block(request: HttpRequest, slug: str, body: MostIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    price = training_price(project)
    charges.refuse_dearer(price, body.most_epsilon)
    block = selection.close_block(project=project)
    return {"block": block.block, "closes_at": block.closes_at, "epsilon": price.epsilon, "delta": price.delta}


@router.write(
    "projects/{slug:slug}/trainings",
    response={202: TrainingOut},
    summary="Train on what is there although it is less than the project declares for a model",
)
def train_on_few(request: HttpRequest, slug: str, body: MostIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    price = training_price(project)
    charges.refuse_dearer(price, body.most_epsilon)
    run = loop.train_on_few(project=project)
    return {"version": run.version, "state": run.state, "epsilon": price.epsilon, "delta": price.delta}
