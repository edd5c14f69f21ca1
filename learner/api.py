"""REST routes of the learner: released models with their guarantee, their files, and the rounds."""

import json
from typing import Annotated, Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Field, Query, Router, Schema

from annotation import selectors as annotation_selectors
from annotation.intervals import wilson_interval
from annotation.models import Project, Role
from annotation.people.services.tokens import Scope
from annotation.rest.base import require_scope
from annotation.rest.pagination import Page, page_of
from annotation.rest.responses import Moment, SaidOut, as_code, paged, responses
from learner import selectors
from learner.models import Evaluation, ModelRelease, ReleaseState, Round
from learner.releases import selectors as release_selectors
from learner.releases.downloads import RETIRED_WARNING, file_response
from learner.releases.services import releases
from learner.rounds.services import predictions
from learner.selectors import stopping

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
    """How many examples of a class are found; in `precision`, how many of those given a class have it."""

    correct: int
    examples: int


class MeasuresOut(Schema):
    """Macro-F1, the expected calibration error and the bins behind it, the confusion matrix (rows are true classes, in
    the order of the weights, classes added since behind them) and the recall of each class; empty of releases from
    before there were measures.

    Where a record may have several classes: micro-F1 and each class's precision in place of the matrix.
    """

    micro_f1: MeasureOut | None = None
    macro_f1: MeasureOut | None = None
    calibration_error: MeasureOut | None = None
    reliability: list[dict[str, int | float | None]] = []
    confusion: list[list[int]] = []
    recall: list[RecallOut] = []
    precision: list[RecallOut] = []


class EvaluationOut(Schema):
    """How well a release does on one public test set, with 95 % intervals; `constant` is the accuracy of always giving
    the likeliest answer, `version_0` that of the words about the classes alone, null where there were none. Where a
    record may have several classes, right is whoever is given all of them and no other.
    """

    dataset: str
    examples: int
    correct: int
    accuracy: float
    interval: tuple[float, float]
    constant: float
    version_0: float | None
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


class EncoderFileOut(Schema):
    """A file of the public encoder that a release reads and does not bring, to download like its own."""

    name: str
    sha256: str
    bytes: int
    url: str


class LineageOut(Schema):
    """A ledger entry the model descends from."""

    account: str
    sequence: int
    kind: str
    purpose: str
    hash: str


class StoppingOut(Schema):
    """Whether more answers still help, as a version and those before it show on what passed the gate: they no longer
    do (`stop`) once `agreement`, the smallest Cohen's kappa between neighbours among the `models_compared`, reaches
    `threshold`. To the share `moved` of all that was said, this version gives another class than the one before.
    """

    stop: bool
    agreement: float
    threshold: float
    moved: float
    models_compared: int
    said: str
    said_as_code: SaidOut | None


class ModelOut(Schema):
    """A released model, or a candidate that waits for the release gate; `guarantee` holds each account's limit and what
    was spent of it at the release. `checks` says what the gate found, `held_back` why it offers no files.

    `beaten_by` names what costs nothing and is right as often on public examples: `constant` is always giving the
    likeliest answer, `version_0` the words about the classes alone. Such a version is `latest` only with a manager's
    word, which is `endorsement` then.

    `stopping` says whether more answers still help, null where versions were too few or were paid for one by one.

    `rounds` are those whose questions it was trained on. Of a secret sample the size of the pool and the rate of its
    coins are given instead of the questions asked. `encoder` is empty where the release brings all it reads.
    """

    version: int
    state: str
    retired_reason: str
    checks: dict[str, str]
    checks_as_code: dict[str, SaidOut] = {}
    held_back: str
    held_back_as_code: SaidOut | None = None
    beaten_by: str
    endorsement: str
    stopping: StoppingOut | None
    released_at: Moment | None
    estimator: str
    questions_asked: int | None
    pool_size: int | None
    sampling_rate: float | None
    rounds: list[int]
    created_at: Moment
    guarantee: list[TermsOut]
    configuration: dict[str, Any]
    environment: dict[str, str]
    public_key: str
    model_signing_key: str
    evaluations: list[EvaluationOut]
    files: list[FileOut]
    encoder: list[EncoderFileOut]
    lineage: list[LineageOut]


class PredictIn(Schema):
    """Records to predict: texts, or rows of the declared columns, as the project holds; nothing of them is kept."""

    texts: list[Annotated[str, Field(max_length=LONGEST_TEXT)]] | None = Field(
        None, min_length=1, max_length=LARGEST_BATCH
    )
    rows: list[dict[str, Any]] | None = Field(None, min_length=1, max_length=LARGEST_BATCH)


class PredictOut(Schema):
    """A class for each record in the order sent, and the probabilities of all classes in the order of `classes`.

    Where a record may have several classes, those likelier than not, and each probability stands for itself.
    """

    version: int
    classes: list[str]
    labels: list[str] | list[list[str]]
    probabilities: list[list[float]]


class RoundOut(Schema):
    """One choice of questions; how many a secret block asks stays inside, and why one failed is for managers."""

    number: int
    strategy: str
    state: str
    requested: int | None
    block: int | None
    pool_size: int | None
    sampling_rate: float | None
    closes_at: Moment | None
    selected: int | None
    model_version: int | None
    created_at: Moment
    finished_at: Moment | None
    error: str
    error_as_code: SaidOut | None = None


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
    openapi_extra=responses(409, 416, 500, parameters=CONDITIONS, responses=FILE_ANSWERS),
)
def get_file(request: HttpRequest, slug: str, version: str, name: str) -> HttpResponseBase:
    return file_response(request, _release(request, slug, version), name)


@router.post(
    "projects/{slug:slug}/models/{version}/predict",
    response=PredictOut,
    summary="Try a released model on a few records",
    openapi_extra=responses(409, headers={200: RETIRED}),
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
    project = _project(request, slug)
    inside = annotation_selectors.projects_of(request.user, roles=(Role.MANAGER,)).filter(pk=project.pk).exists()
    found = selectors.rounds_of(project)
    return [_round(chosen, inside=inside) for chosen in page_of(found, page, request=request, response=response)]


def _model(release: ModelRelease) -> dict[str, Any]:
    slug, version = release.project.slug, release.version
    used = selectors.trained_on(release.training_run)
    return {
        "version": version,
        "state": release.state,
        "retired_reason": release.retired_reason,
        "checks": release.checks,
        "checks_as_code": {name: as_code(said) for name, said in release.checks.items()},
        "held_back": release.held_back,
        "held_back_as_code": as_code(release.held_back),
        "beaten_by": selectors.beaten_by(release),
        "endorsement": release.endorsement.reason if hasattr(release, "endorsement") else "",
        "stopping": _stopping(release),
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
        "model_signing_key": releases.signer().models.public_key,
        "evaluations": [_evaluation(evaluation) for evaluation in release.evaluations.all()],
        "files": [
            {"name": name, "sha256": digest, "url": reverse("api:get_file", args=(slug, str(version), name))}
            for name, digest in sorted(release.digests.items())
        ],
        "encoder": [
            {
                "name": one.name,
                "sha256": one.sha256,
                "bytes": one.size,
                "url": reverse("api:get_file", args=(slug, str(version), one.name)),
            }
            for one in release_selectors.encoder_files(release)
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


def _stopping(release: ModelRelease) -> dict[str, Any] | None:
    advice = stopping.advice_of(release)
    if advice is None:
        return None
    said = stopping.stopping_sentence(advice, release)
    numbers = ("stop", "agreement", "threshold", "moved", "models_compared")
    return {name: getattr(advice, name) for name in numbers} | {"said": said, "said_as_code": as_code(said)}


def _evaluation(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "dataset": evaluation.dataset.name,
        "examples": evaluation.examples,
        "correct": evaluation.correct,
        "accuracy": evaluation.correct / evaluation.examples,
        "interval": wilson_interval(evaluation.correct, evaluation.examples),
        "constant": evaluation.constant_correct / evaluation.examples,
        "version_0": None
        if evaluation.described_correct is None
        else evaluation.described_correct / evaluation.examples,
        "measures": evaluation.measures,
    }


def _round(chosen: Round, *, inside: bool) -> dict[str, Any]:
    fields = ("number", "strategy", "state", "block", "closes_at", "created_at", "finished_at")
    return {name: getattr(chosen, name) for name in fields} | {
        # What made a step fail may be in the rows or answers that it read.
        "error": chosen.error if inside else "",
        "error_as_code": as_code(chosen.error) if inside else None,
        "model_version": chosen.model.version if chosen.model else None,
        **selectors.asked_in(chosen),
    }
