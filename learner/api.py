"""REST routes of the learner: released models with their guarantee, their files, and the rounds."""

import json
from datetime import datetime
from typing import Annotated, Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Field, Query, Router, Schema

from annotation.answers import answers, paged
from annotation.api import require_scope
from annotation.models import Project
from annotation.pagination import Page, page_of
from annotation.services.tokens import Scope
from learner import release_selectors, selectors
from learner.downloads import RETIRED_WARNING, file_response
from learner.intervals import wilson_interval
from learner.models import Evaluation, ModelRelease, ReleaseState, Round
from learner.services import predictions, releases

router = Router()
LARGEST_BATCH = 1000
LONGEST_TEXT = 20_000
RETIRED = {"Warning": {"schema": {"type": "string"}, "description": "There where the version is retired."}}
TAG = {"ETag": {"required": True, "schema": {"type": "string", "pattern": '^"[0-9a-f]{64}"$'}}}
PART = {"Content-Range": {"required": True, "schema": {"type": "string", "pattern": "^bytes [0-9]+-[0-9]+/[0-9]+$"}}}
LENGTH = {
    "Content-Length": {"required": True, "schema": {"type": "integer", "minimum": 0}},
    "Accept-Ranges": {"required": True, "schema": {"const": "bytes"}},
}
FILE: dict[str, Any] = {"content": {"application/json": {}, "text/markdown": {}, "application/octet-stream": {}}}
FILE_ANSWERS = {
    200: {"description": "The file", "headers": RETIRED | TAG | LENGTH, **FILE},
    206: {"description": "The part asked for", "headers": RETIRED | TAG | LENGTH | PART, **FILE},
    304: {"description": "The caller has it already", "headers": RETIRED | TAG},
}
CONDITIONS = [
    {"in": "header", "name": name, "schema": {"type": "string"}} for name in ("Range", "If-Range", "If-None-Match")
]


class MeasureOut(Schema):
    """A share or a score with its 95 % interval; null of a class without examples."""

    value: float | None
    low: float | None
    high: float | None


class RecallOut(MeasureOut):
    """How many examples of a class are found."""

    correct: int
    examples: int


class MeasuresOut(Schema):
    """Macro-F1, the expected calibration error and the bins behind it, the confusion matrix (rows are true classes, in
    the order of the weights) and the recall of each class; empty of releases from before there were measures.
    """

    macro_f1: MeasureOut | None = None
    calibration_error: MeasureOut | None = None
    reliability: list[dict[str, int | float | None]] = []
    confusion: list[list[int]] = []
    recall: list[RecallOut] = []


class EvaluationOut(Schema):
    """How well a release does on one public test set, with 95 % intervals."""

    dataset: str
    examples: int
    correct: int
    accuracy: float
    interval: tuple[float, float]
    measures: MeasuresOut


class TermsOut(Schema):
    """An account when the version was released: its limit is the guarantee."""

    protects: str
    filter: str
    unit: str
    adjacency: str
    limit_epsilon: float
    limit_delta: float
    spent_epsilon: float
    spent_delta: float


class FileOut(Schema):
    """A file to download."""

    name: str
    sha256: str
    url: str


class LineageOut(Schema):
    """A ledger entry the model descends from."""

    account: str
    sequence: int
    kind: str
    purpose: str
    hash: str


class ModelOut(Schema):
    """A released model, or a candidate that waits for the release gate; `guarantee` holds each account's limit and what
    was spent of it at the release. `checks` says what the gate found, `held_back` why it offers no files.

    `rounds` are those whose questions it was trained on. Of a secret sample the size of the pool and the rate of its
    coins are given instead of the questions asked.
    """

    version: int
    state: str
    retired_reason: str
    checks: dict[str, str]
    held_back: str
    released_at: datetime | None
    estimator: str
    questions_asked: int | None
    pool_size: int | None
    sampling_rate: float | None
    rounds: list[int]
    created_at: datetime
    guarantee: list[TermsOut]
    configuration: dict[str, Any]
    environment: dict[str, str]
    public_key: str
    evaluations: list[EvaluationOut]
    files: list[FileOut]
    lineage: list[LineageOut]


class PredictIn(Schema):
    """Records to predict: texts, or rows of the declared columns, as the project holds; nothing of them is kept."""

    texts: list[Annotated[str, Field(max_length=LONGEST_TEXT)]] | None = Field(
        None, min_length=1, max_length=LARGEST_BATCH
    )
    rows: list[dict[str, Any]] | None = Field(None, min_length=1, max_length=LARGEST_BATCH)


class PredictOut(Schema):
    """A class for each record in the order sent, and the probabilities of all classes in the order of `classes`."""

    version: int
    classes: list[str]
    labels: list[str]
    probabilities: list[list[float]]


class RoundOut(Schema):
    """One choice of questions; how many a secret block asks stays inside."""

    number: int
    strategy: str
    state: str
    requested: int | None
    block: int | None
    pool_size: int | None
    sampling_rate: float | None
    closes_at: datetime | None
    selected: int | None
    model_version: int | None
    created_at: datetime
    finished_at: datetime | None
    error: str


def _project(request: HttpRequest, slug: str) -> Project:
    require_scope(request, Scope.MODELS_READ)
    return get_object_or_404(selectors.projects_with_models(request.user), slug=slug)


def _release(request: HttpRequest, slug: str, version: str) -> ModelRelease:
    project = _project(request, slug)
    found = selectors.find_release(project, version)
    if found is None:
        raise Http404
    return found


@router.get(
    "projects/{slug:slug}/models",
    response=list[ModelOut],
    summary="Released models, newest first",
    openapi_extra=paged(),
)
def list_models(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    found = selectors.releases_of(_project(request, slug))
    return [_model(release) for release in page_of(found, page, request=request, response=response)]


@router.get("projects/{slug:slug}/models/{version}", response=ModelOut, summary="One released model, or the latest")
def get_model(request: HttpRequest, slug: str, version: str) -> Any:
    return _model(_release(request, slug, version))


@router.get(
    "projects/{slug:slug}/models/{version}/files/{name}",
    summary="A file of a released model",
    openapi_extra=answers(409, 416, 500, parameters=CONDITIONS, responses=FILE_ANSWERS),
)
def get_file(request: HttpRequest, slug: str, version: str, name: str) -> HttpResponseBase:
    return file_response(request, _release(request, slug, version), name)


@router.post(
    "projects/{slug:slug}/models/{version}/predict",
    response=PredictOut,
    summary="Try a released model on a few records",
    openapi_extra=answers(409, headers={200: RETIRED}),
)
def predict(request: HttpRequest, slug: str, version: str, body: PredictIn) -> HttpResponse:
    require_scope(request, Scope.MODELS_READ)
    release = release_selectors.served_release(request.user, slug, version)
    if release is None:
        raise Http404
    predictor, labels, probabilities = predictions.predict_records(release=release, texts=body.texts, rows=body.rows)
    told = {
        "version": release.version,
        "classes": predictor.model.classes,
        "labels": labels,
        "probabilities": probabilities.tolist(),
    }
    # Written as it is: a model of the answer would take longer than the prediction.
    answer = HttpResponse(json.dumps(told), content_type="application/json; charset=utf-8")
    if release.state == ReleaseState.RETIRED:
        answer.headers["Warning"] = RETIRED_WARNING
    return answer


@router.get(
    "projects/{slug:slug}/rounds",
    response=list[RoundOut],
    summary="How questions were chosen, newest first",
    openapi_extra=paged(),
)
def list_rounds(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    found = selectors.rounds_of(_project(request, slug))
    return [_round(chosen) for chosen in page_of(found, page, request=request, response=response)]


def _model(release: ModelRelease) -> dict[str, Any]:
    slug, version = release.project.slug, release.version
    used = selectors.trained_on(release.training_run)
    return {
        "version": version,
        "state": release.state,
        "retired_reason": release.retired_reason,
        "checks": release.checks,
        "held_back": release.held_back,
        "released_at": release.released_at,
        "estimator": release.estimator,
        "questions_asked": used.questions,
        "pool_size": used.pool_size,
        "sampling_rate": used.rate,
        "rounds": selectors.rounds_behind(release.training_run),
        "created_at": release.created_at,
        "guarantee": release.guarantee,
        "configuration": release_selectors.shown_configuration(release),
        "environment": release.environment,
        "public_key": releases.signer().public_key,
        "evaluations": [_evaluation(evaluation) for evaluation in release.evaluations.all()],
        "files": [
            {"name": name, "sha256": digest, "url": reverse("api:get_file", args=(slug, str(version), name))}
            for name, digest in sorted(release.digests.items())
        ],
        "lineage": [
            {
                "account": entry.account.scope,
                "sequence": entry.sequence,
                "kind": entry.kind,
                "purpose": entry.purpose,
                "hash": entry.hash,
            }
            for entry in selectors.lineage_of(release)
        ],
    }


def _evaluation(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "dataset": evaluation.dataset.name,
        "examples": evaluation.examples,
        "correct": evaluation.correct,
        "accuracy": evaluation.correct / evaluation.examples,
        "interval": wilson_interval(evaluation.correct, evaluation.examples),
        "measures": evaluation.measures,
    }


def _round(chosen: Round) -> dict[str, Any]:
    fields = ("number", "strategy", "state", "block", "closes_at", "created_at", "finished_at", "error")
    return {name: getattr(chosen, name) for name in fields} | {
        "model_version": chosen.model.version if chosen.model else None,
        **selectors.asked_in(chosen),
    }
