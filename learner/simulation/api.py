"""REST routes of the plan: what a project's accounts still buy, and how good its models become."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Field, Query, Schema

from annotation.models import Project, Role, WorkState
from annotation.people.identity import note_nothing, person_of
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, member_project, project_for, require_scope
from annotation.work.services.tokens import Scope
from learner.models.planning import PlanSimulation
from learner.simulation import services
from learner.simulation.estimates import recommendation
from learner.simulation.plan_setups import (
    FEWEST_RECORDS,
    MOST_RECORDS,
    default_records,
    purchase_of,
    setup_of,
    total_epsilon,
)
from learner.simulation.setup import Setup

router = RoomRouter()
PlannedRecords = Annotated[
    int | None,
    Query(
        ge=FEWEST_RECORDS,
        le=MOST_RECORDS,
        description="Records to plan for: your own guess, since no upload is looked at.",
    ),
]


class PlanOut(Answer, reads=Reads.MANAGED):
    """What the accounts buy as they stand, if people answer all they are asked and agree.

    `uploads` is how many the gate can take, null without one and where all share one price; `label_limit` how many
    answers may be paid, null without a limit; `choosing`, `training` and `whole` are epsilons: of all choosing, of one
    training, and of a whole stream where there is one.
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
def get_plan(request: HttpRequest, slug: str, records: PlannedRecords = None) -> Any:
    require_scope(request, Scope.LEDGER_READ)
    project = member_project(request, slug, Role.MANAGER)
    return purchase_of(project, records or default_records(project))


class SimulatedPointOut(Answer, reads=Reads.MANAGED):
    """Accuracy after so many labels on one kind of data that is about nobody, with privacy and without."""

    data: Literal["digits", "made_up"]
    labels: int
    accuracy: float
    worst: float
    best: float
    without_privacy: float


class PlanSimulationOut(Answer, reads=Reads.MANAGED):
    """A simulation of the settings as they are, and what it recommends with its reason, empty before it is done."""

    records: int
    state: Literal["none", "waiting", "running", "done", "failed"]
    recommendation: str
    points: list[SimulatedPointOut]


class PlanIn(Schema):
    """A number of records to plan for, by default what the site plans for."""

    records: int | None = Field(None, ge=FEWEST_RECORDS, le=MOST_RECORDS)


@router.get(
    "projects/{slug:slug}/plan/simulation", response=PlanSimulationOut, summary="What a simulation of the plan found"
)
def get_plan_simulation(request: HttpRequest, slug: str, records: PlannedRecords = None) -> Any:
    project = project_for(request, slug, Scope.LEDGER_READ, Role.MANAGER)
    return _simulation(_setup(project, records), total_epsilon(project))


@router.write(
    "projects/{slug:slug}/plan/simulation",
    response={202: PlanSimulationOut},
    summary="Simulate the plan on data about nobody; nothing is charged",
)
def simulate_plan(request: HttpRequest, slug: str, body: PlanIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    setup, epsilon = _setup(project, body.records), total_epsilon(project)
    if setup.can_be_simulated:
        services.start_simulation(project=project, setup=setup, epsilon=epsilon, owner=person_of(request))
    else:
        note_nothing(request)
    return _simulation(setup, epsilon)


def _setup(project: Project, records: int | None) -> Setup:
    # As the page does, so that both plan alike.
    return setup_of(project, records or max(FEWEST_RECORDS, default_records(project)))


def _simulation(setup: Setup, epsilon: float) -> dict[str, Any]:
    fingerprint = services.fingerprint_of(setup, epsilon)
    simulation = PlanSimulation.objects.select_related("job").filter(fingerprint=fingerprint).first()
    result = {} if simulation is None or simulation.result is None else simulation.result
    return {
        "records": setup.records,
        "state": _state(simulation),
        "recommendation": recommendation(result),
        "points": [
            {
                "data": data,
                "labels": point["labels"],
                "accuracy": point["mean"],
                "worst": point["low"],
                "best": point["high"],
                "without_privacy": clear["mean"],
            }
            for data, points in result.get("curves", {}).items()
            for point, clear in zip(points, result["plain"][data], strict=False)
        ],
    }


def _state(simulation: PlanSimulation | None) -> str:
    if simulation is not None and simulation.result is not None:
        return "done"
    if simulation is None or simulation.job is None:
        return "none"
    known = {WorkState.WAITING: "waiting", WorkState.RUNNING: "running"}
    return known.get(WorkState(simulation.job.state), "failed")
