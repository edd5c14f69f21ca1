"""REST routes of the gate of a crowd project: comparing gates by price, choosing one, counting an upload."""

from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Schema
from pydantic import create_model

from annotation.budget import charges
from annotation.choices.gates import own_gate_parameters
from annotation.data import selectors as data_selectors
from annotation.data.api import DatasetOut
from annotation.errors import UploadRefused
from annotation.gates import comparison
from annotation.gates import services as gates
from annotation.gates.forms import GateChoiceForm, GatePlanForm
from annotation.models import DatasetRole, Oracle, Project, Role
from annotation.people.identity import person_of
from annotation.work.reads import Answer, Reads
from annotation.work.rest import JobOut, MostIn, RoomRouter, checked, project_for, row_id
from annotation.work.services.tokens import Scope
from privacy.gate.planning import Passing
from privacy.wording import as_message

router = RoomRouter()


class PassingOut(Answer, reads=Reads.MANAGED):
    """Texts that would pass a gate on average: as private as the data they are compared on."""

    texts: float
    text_share: float
    contribution_share: float


class GateOfferOut(Answer, reads=Reads.MANAGED):
    """A gate at the wanted price that no other beats."""

    settings: dict[str, Any]
    needed: int = Field(description="About how often a text must be said to pass.")
    is_recommended: bool
    passing: PassingOut | None = Field(description="On the source that is asked about, once that is counted.")


class GatePlanOut(Answer, reads=Reads.MANAGED):
    """A project's gate, the price of one run through it, and what other gates there are at a price."""

    settings: dict[str, Any]
    epsilon: float
    delta: float
    is_frozen: bool = Field(description="Whether something was charged for this gate, so that it stays.")
    offers: list[GateOfferOut]
    is_private: bool = Field(
        description="Whether what would pass is drawn for the pool itself: for planning, never to choose a gate by."
    )
    job: JobOut | None = Field(description="The work that counts the upload that is asked about.")


class GatePlanIn(Schema):
    """The price at which gates are compared, that of one run where none is named, and what they are compared on."""

    epsilon: float | None = Field(None, description="Of one upload.")
    delta: float | None = None
    source: str = Field(
        "", max_length=40, description="`synthetic`, `numbers` for the three below, or the id of an upload."
    )
    records: int | None = None
    different_texts: int | None = None
    most_frequent: int | None = None


def gate_fields() -> dict[str, Any]:
    own = {name: (each.type | None, None) for name, each in own_gate_parameters().items()}
    alike = Field("", max_length=10, description="When two texts are the same; as it is where none is named.")
    kind = Field(max_length=40)
    return {"gate_kind": (str, kind), "gate_epsilon": (float, ...), **own, "normalizer": (str, alike)}


if TYPE_CHECKING:
    GateIn = Schema
else:
    GateIn = create_model(
        "GateIn", __base__=Schema, __doc__="A gate by its settings, as an offer names them.", **gate_fields()
    )


@router.get("projects/{slug:slug}/gate", response=GatePlanOut, summary="The gate, its price, and others at a price")
def get_gate(request: HttpRequest, slug: str, plan: Query[GatePlanIn]) -> Any:
    project = _crowd(request, slug, Scope.PROJECTS_READ)
    price = charges.run_charge(project)
    asked = {name: value for name, value in plan.dict().items() if value is not None}
    start = {"epsilon": price.epsilon, "delta": max(price.delta, comparison.SMALLEST_DELTA)}
    form = GatePlanForm(start | asked, project=project, uploads=list(gates.countable_uploads(project).order_by("pk")))
    checked(form)
    upload, frequencies = form.upload(), form.frequencies()
    passing: list[Passing | None] = [None] * len(form.offers)
    if frequencies is not None:
        passing = list(comparison.passing_shares(form.offers, frequencies))
    best = comparison.recommended(form.offers)
    return {
        "settings": comparison.own_settings(project.settings),
        "epsilon": price.epsilon,
        "delta": price.delta,
        "is_frozen": gates.gate_is_frozen(project),
        "offers": [
            {"settings": offer.settings, "needed": offer.needed, "is_recommended": offer is best, "passing": share}
            for offer, share in zip(form.offers, passing, strict=True)
        ],
        "is_private": upload is not None and upload.role == DatasetRole.POOL,
        "job": None if upload is None else gates.survey_job(upload),
    }


@router.write("projects/{slug:slug}/gate", summary="Choose the gate, while nothing is charged for the one that stands")
def choose_gate(request: HttpRequest, slug: str, body: GateIn) -> None:
    project = _crowd(request, slug, Scope.PROJECTS_WRITE)
    form = GateChoiceForm(body.dict())
    checked(form)
    gates.choose_gate(project=project, settings=form.settings())


@router.write(
    "projects/{slug:slug}/datasets/{dataset_id}/survey",
    response={202: JobOut},
    summary="Have a worker count a whole upload for the plan of the gate; nothing is charged",
)
def survey_dataset(request: HttpRequest, slug: str, dataset_id: str) -> Any:
    project = _crowd(request, slug, Scope.DATASETS_WRITE)
    found = get_object_or_404(gates.countable_uploads(project), pk=row_id(dataset_id))
    return gates.start_survey(dataset=found, owner=person_of(request))


def _crowd(request: HttpRequest, slug: str, scope: Scope) -> Project:
    project = project_for(request, slug, scope, Role.MANAGER)
    if project.oracle != Oracle.CROWD:
        raise Http404
    return project


@router.write(
    "projects/{slug:slug}/datasets/{int:dataset_id}/gate",
    response={202: DatasetOut},
    summary="Send an upload through the gate again; it draws and pays anew",
)
def start_gate(request: HttpRequest, slug: str, dataset_id: int, body: MostIn) -> Any:
    project = project_for(request, slug, Scope.DATASETS_WRITE, Role.MANAGER)
    found = get_object_or_404(data_selectors.uploads_of(project), pk=dataset_id)
    charges.refuse_dearer(charges.upload_charge(project, found.role, found), body.most_epsilon)
    if gates.start_gate(dataset=found, owner=person_of(request)) is None:
        raise UploadRefused(as_message("This upload already went through the gate, or is in it."))
    return get_object_or_404(data_selectors.uploads_of(project), pk=dataset_id)
