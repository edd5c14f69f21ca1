"""REST routes of the plan: what a project's accounts still buy, and how good its models become."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Field, Query, Schema

from annotation.models import Role, WorkState
from annotation.people.identity import note_nothing, person_of
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, member_project, project_for, require_scope
from annotation.work.services.tokens import Scope
from learner.models.planning import PlanSimulation
from learner.simulation import services
from learner.simulation.estimates import recommendation
from learner.simulation.forecast import Forecast, forecast_of
from learner.simulation.plan_setups import FEWEST_RECORDS, MOST_RECORDS, total_epsilon

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
    """Rounds and releases the accounts still buy, if people answer all they are asked and agree.

    `releases` and `rounds` still come, null of a stream, which pays once, and while work runs. `uploads` is how many
    the gate can take, null without one and where all share one price; `label_limit` how many answers may be paid, null
    without a limit; `choosing`, `training` and `whole` are epsilons: of all choosing, of one training, and of a whole
    stream where there is one.
    """

    records: int
    uploads: int | None
    releases: int | None
    rounds: int | None
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
    return forecast_of(project, records=records)


class SimulatedPointOut(Answer, reads=Reads.MANAGED):
    """Accuracy or entity F1 after so many labels on one kind of data that is about nobody, with privacy and without."""

    data: Literal["public", "digits", "made_up"]
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
    measure: Literal["accuracy", "entity_f1"]
    points: list[SimulatedPointOut]


class PlanIn(Schema):
    """A number of records to plan for, by default what the site plans for."""

    records: int | None = Field(None, ge=FEWEST_RECORDS, le=MOST_RECORDS)


@router.get(
    "projects/{slug:slug}/plan/simulation", response=PlanSimulationOut, summary="What a simulation of the plan found"
)
def get_plan_simulation(request: HttpRequest, slug: str, records: PlannedRecords = None) -> Any:
    project = project_for(request, slug, Scope.LEDGER_READ, Role.MANAGER)
    return _simulation(forecast_of(project, records=records))


@router.write(
    "projects/{slug:slug}/plan/simulation",
    response={202: PlanSimulationOut},
    summary="Simulate the plan on data about nobody; nothing is charged",
)
def simulate_plan(request: HttpRequest, slug: str, body: PlanIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    forecast = forecast_of(project, records=body.records)
    if forecast.can_be_simulated:
        assert forecast.setup is not None
        services.start_simulation(
            project=project,
            setup=forecast.setup,
            epsilon=total_epsilon(project),
            owner=person_of(request),
            public=forecast.public,
        )
        forecast = forecast_of(project, records=body.records)
    else:
        note_nothing(request)
    return _simulation(forecast)


def _simulation(forecast: Forecast) -> dict[str, Any]:
    simulation = forecast.simulation
    result = {} if simulation is None or simulation.result is None else simulation.result
    return {
        "records": forecast.records,
        "state": _state(simulation),
        "recommendation": recommendation(result),
        "measure": "entity_f1" if forecast.finds_spans else "accuracy",
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
            for point, clear in zip(points, result.get("plain", {}).get(data, ()), strict=False)
        ],
    }


def _state(simulation: PlanSimulation | None) -> str:
    if simulation is not None and simulation.result is not None:
        return "done"
    if simulation is None or simulation.job is None:
        return "none"
    known = {WorkState.WAITING: "waiting", WorkState.RUNNING: "running"}
    return known.get(WorkState(simulation.job.state), "failed")
