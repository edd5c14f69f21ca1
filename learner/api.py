"""REST routes of the learner: released models with their guarantee, their files, and the rounds."""

import json
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Field, Query, Schema

from annotation import selectors as annotation_selectors
from annotation.models import Role
from annotation.work.ranges import CONDITIONS, file_answers
from annotation.work.reads import Answer, Reads
from annotation.work.rest import Moment, Page, RoomRouter, SaidOut, as_code, page_of, responses
from learner.access import may_manage
from learner.errors import InputNotFitting
from learner.models import ReleaseState, Round
from learner.pools import selectors
from learner.releases.api import existing_release, readable_project
from learner.releases.downloads import RETIRED_WARNING, described_response, file_response
from learner.releases.model_out import ModelOut, described_out, model_out
from learner.releases.no_privacy import estimate_of_run, with_estimates
from learner.releases.services import described
from learner.rounds.services import suggestions
from privacy.wording import in_english

router = RoomRouter()
# The version that no training made: public words alone.
DESCRIBED = "0"
LARGEST_BATCH = 1000
LONGEST_TEXT = 20_000
RETIRED = {"Warning": {"schema": {"type": "string"}, "description": "There where the version is retired."}}
FILE: dict[str, Any] = {"application/json": {}, "text/markdown": {}, "application/octet-stream": {}}


class PredictIn(Schema):
    """Records to predict: texts, or rows of the declared columns, as the project holds; nothing of them is kept."""

    texts: list[Annotated[str, Field(max_length=LONGEST_TEXT)]] | None = Field(
        None, min_length=1, max_length=LARGEST_BATCH
    )
    rows: list[dict[str, Any]] | None = Field(None, min_length=1, max_length=LARGEST_BATCH)


class PredictOut(Answer, reads=Reads.SETTINGS):
    """A class for each record in the order sent, and the probabilities of all classes in the order of `classes`.

    Where a record may have several classes, those likelier than not, and each probability stands for itself.
    """

    version: int
    classes: list[str]
    labels: Annotated[list[str] | list[list[str]], Reads.MEASURED]
    probabilities: Annotated[list[list[float]], Reads.MEASURED]


class RoundOut(Answer, reads=Reads.SETTINGS):
    """One choice of questions; how many a secret block asks stays inside, and why one failed is for managers."""

    number: int
    strategy: str
    state: str
    requested: int | None
    block: int | None
    pool_size: int | None
    sampling_rate: float | None
    closes_at: Moment | None
    selected: Annotated[int | None, Reads.RELEASED]
    model_version: int | None
    created_at: Annotated[Moment, Reads.LEDGER]
    finished_at: Annotated[Moment | None, Reads.LEDGER]
    error: Annotated[str, Reads.MANAGED]
    error_as_code: Annotated[SaidOut | None, Reads.MANAGED] = None


@router.pages("projects/{slug:slug}/models", response=list[ModelOut], summary="Released models, newest first")
def list_models(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    project = readable_project(request, slug)
    found = selectors.releases_of(project)
    shown = list(page_of(found, page, request=request, response=response))
    may_plan = may_manage(request, project)
    return [model_out(*each, may_plan=may_plan) for each in with_estimates(shown)]


@router.get(
    "projects/{slug:slug}/models/{version}",
    response=ModelOut,
    summary="One released model, the latest, or version 0",
    openapi_extra=responses(409, 410),
)
def get_model(request: HttpRequest, slug: str, version: str) -> Any:
    if version == DESCRIBED:
        project = readable_project(request, slug)
        return described_out(described.described_release(project), may_plan=may_manage(request, project))
    found = existing_release(readable_project(request, slug), version)
    run = found.training_run
    return model_out(
        found, selectors.trained_on(run), estimate_of_run(run), may_plan=may_manage(request, found.project)
    )


@router.get(
    "projects/{slug:slug}/models/{version}/files/{name}",
    summary="A file of a released model",
    openapi_extra=responses(409, 410, 416, 500, parameters=CONDITIONS, responses=file_answers(FILE, RETIRED)),
)
def get_file(request: HttpRequest, slug: str, version: str, name: str) -> HttpResponseBase:
    if version == DESCRIBED:
        return described_response(request, described.described_release(readable_project(request, slug)), name)
    return file_response(request, existing_release(readable_project(request, slug), version), name)


@router.post(
    "projects/{slug:slug}/models/{version}/predict",
    response=PredictOut,
    summary="Try a released model on a few records",
    openapi_extra=responses(409, headers={200: RETIRED}),
)
def predict(request: HttpRequest, slug: str, version: str, body: PredictIn) -> HttpResponse:
    project = readable_project(request, slug)
    if version == DESCRIBED:
        raise InputNotFitting(in_english("This route does not predict with version 0; download its files."))
    release = existing_release(project, version)
    predictor, labels, probabilities = suggestions.predict_records(release=release, texts=body.texts, rows=body.rows)
    predicted = {
        "version": release.version,
        "classes": predictor.model.classes,
        "labels": labels,
        "probabilities": probabilities.tolist(),
    }
    # Written as it is: a model of the answer would take longer than the prediction.
    answer = HttpResponse(json.dumps(predicted), content_type="application/json; charset=utf-8")
    if release.state == ReleaseState.RETIRED:
        answer.headers["Warning"] = RETIRED_WARNING
    return answer


@router.pages("projects/{slug:slug}/rounds", response=list[RoundOut], summary="How questions were chosen, newest first")
def list_rounds(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    project = readable_project(request, slug)
    inside = annotation_selectors.projects_of(request.user, roles=(Role.MANAGER,)).filter(pk=project.pk).exists()
    found = selectors.rounds_of(project)
    return [_round(chosen, inside=inside) for chosen in page_of(found, page, request=request, response=response)]


def _round(chosen: Round, *, inside: bool) -> dict[str, Any]:
    fields = ("number", "strategy", "state", "block", "closes_at", "created_at", "finished_at")
    return {name: getattr(chosen, name) for name in fields} | {
        # What made a step fail may be in the rows or answers that it read.
        "error": chosen.error if inside else "",
        "error_as_code": as_code(chosen.error) if inside else None,
        "model_version": chosen.model.version if chosen.model else None,
        **selectors.asked_in(chosen),
    }
