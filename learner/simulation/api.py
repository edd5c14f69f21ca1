"""The REST routes of the plan: what a project's accounts still buy, how good other settings are, and using some."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Schema

from annotation import selectors
from annotation.models import Project, Role, WorkState
from annotation.people.identity import note_nothing, person_of
from annotation.projects.api import ConfigurationOut, configuration_out
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, project_for, require_scope
from annotation.work.services.tokens import Scope
from learner.models.planning import PlanSimulation
from learner.simulation import services
from learner.simulation.plan_setups import FEWEST_RECORDS, MOST_RECORDS, default_records, purchase_of
from learner.simulation.rows import PlannedRows, planned_rows, shown_rows, unreached

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
    project = get_object_or_404(selectors.projects_of(request.user, roles=(Role.MANAGER,)), slug=slug)
    return purchase_of(project, records or default_records(project))


class TriedOut(Answer, reads=Reads.MANAGED):
    """How a row did on one kind of data that is about nobody: means over seeds of the last model."""

    data: Literal["digits", "made_up"]
    labels: int
    accuracy: float
    worst: float
    best: float
    macro_f1: float


class PlanRowOut(Answer, reads=Reads.MANAGED):
    """Settings that were tried: `changes` to those that stand, and the epsilon of all choosing and training.

    Row 0 changes nothing. `better` marks the one row that beats it by more than the distance from worst to best.
    """

    number: int
    changes: dict[str, Any]
    price: float
    releases: int
    better: bool
    tried: list[TriedOut]


class PlanRowsOut(Answer, reads=Reads.MANAGED):
    """The settings that a plan tries for so many records, known by `fingerprint` as long as nothing they rest on moves.

    `why_not` says why none are tried, `left_out` which are not, and `unreached` how many took too long.
    """

    records: int
    fingerprint: str
    state: Literal["none", "waiting", "running", "done", "failed"]
    why_not: str
    left_out: str
    unreached: int
    rows: list[PlanRowOut]


class PlanIn(Schema):
    """A number of records to plan for, by default what the site plans for."""

    records: int | None = Field(None, ge=FEWEST_RECORDS, le=MOST_RECORDS)


class UsePlanIn(Schema):
    """A row of a plan that was simulated."""

    records: int = Field(ge=FEWEST_RECORDS, le=MOST_RECORDS)
    fingerprint: str = Field(pattern="^[0-9a-f]{64}$")
    row: int = Field(ge=1, le=1000)


@router.get(
    "projects/{slug:slug}/plan/rows", response=PlanRowsOut, summary="Which settings a plan tries, and how they did"
)
def get_plan_rows(request: HttpRequest, slug: str, records: PlannedRecords = None) -> Any:
    return _rows(_planned(project_for(request, slug, Scope.LEDGER_READ, Role.MANAGER), records))


@router.write(
    "projects/{slug:slug}/plan/simulation",
    response={202: PlanRowsOut},
    summary="Try the settings on data about nobody; nothing is charged",
)
def simulate_plan(request: HttpRequest, slug: str, body: PlanIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    planned = _planned(project, body.records)
    if planned.setup.can_be_simulated:
        owner = person_of(request)
        services.start_simulation(project=project, setup=planned.setup, epsilon=planned.epsilon, owner=owner)
    else:
        note_nothing(request)
    return _rows(planned)


@router.write(
    "projects/{slug:slug}/plan/use", response=ConfigurationOut, summary="Let the project have the settings of a row"
)
def use_plan(request: HttpRequest, slug: str, body: UsePlanIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    stored = services.use_row(
        project=project,
        records=body.records,
        fingerprint=body.fingerprint,
        number=body.row,
        actor=person_of(request),
    )
    return configuration_out(stored)


def _planned(project: Project, records: int | None) -> PlannedRows:
    # As the page does, so that both plan alike.
    return planned_rows(project, records or max(FEWEST_RECORDS, default_records(project)))


def _rows(planned: PlannedRows) -> dict[str, Any]:
    fingerprint = services.fingerprint_of(planned.setup, planned.epsilon)
    simulation = PlanSimulation.objects.select_related("job").filter(fingerprint=fingerprint).first()
    return {
        "records": planned.setup.records,
        "fingerprint": fingerprint,
        "state": _state(simulation),
        "why_not": planned.why_not,
        "left_out": planned.left_out,
        "unreached": unreached(planned, simulation),
        "rows": [
            {**row, "tried": [_tried(data, point) for data, point in row["points"].items()]}
            for row in shown_rows(planned, simulation)
        ],
    }


def _tried(data: str, point: dict[str, Any]) -> dict[str, Any]:
    accuracies = {"accuracy": point["mean"], "worst": point["low"], "best": point["high"]}
    return {"data": data, "labels": point["labels"], "macro_f1": point["macro_f1"], **accuracies}


def _state(simulation: PlanSimulation | None) -> str:
    if simulation is not None and simulation.result is not None:
        return "done"
    if simulation is None or simulation.job is None:
        return "none"
    known = {WorkState.WAITING: "waiting", WorkState.RUNNING: "running"}
    return known.get(WorkState(simulation.job.state), "failed")
