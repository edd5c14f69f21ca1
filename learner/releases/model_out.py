"""Schemas of a released model: its state, promise, measures, files and origin."""

from collections.abc import Mapping
from typing import Annotated, Any

from django.urls import reverse
from ninja import Field

from annotation.work.reads import Answer, Reads
from annotation.work.rest import Moment, SaidOut, as_code
from learner.models import ModelRelease, ReleaseState
from learner.pools import selectors
from learner.pools.records import TrainedOn
from learner.releases import selectors as release_selectors
from learner.releases import storage
from learner.releases.artifacts.environment import environment
from learner.releases.artifacts.settings import configuration_of, settings_outside
from learner.releases.cards.described import MARK, VERSION, zero_promise
from learner.releases.evaluation_out import EntityF1Out, EvaluationOut, evaluation_out, score_out
from learner.releases.services.described import DescribedRelease
from learner.releases.span_measures import held_out_score
from learner.simulation.estimates import PlannersEstimate


class TermsOut(Answer, reads=Reads.SETTINGS):
    """An account when the version was released: its limit is the guarantee."""

    protects: str
    filter: str
    unit: str
    adjacency: str
    limit_epsilon: float
    limit_delta: float
    spent_epsilon: Annotated[float, Reads.LEDGER]
    spent_delta: Annotated[float, Reads.LEDGER]


class FileOut(Answer, reads=Reads.SETTINGS):
    """A file to download."""

    name: str
    sha256: Annotated[str, Reads.MEASURED]
    url: str


class LineageOut(Answer, reads=Reads.SETTINGS):
    """A ledger entry the model descends from; its subject says of which round or version it is."""

    account: str = Field(validation_alias="account.scope")
    sequence: int
    kind: str
    subject: str
    purpose: str
    hash: Annotated[str, Reads.LEDGER]


class ModelOut(Answer, reads=Reads.SETTINGS):
    """A released model, or a candidate that waits for the release gate; `guarantee` holds each account's limit and what
    was spent of it at the release. `checks` says what the gate found, `held_back` why it offers no files.

    `beaten_by` names what costs nothing and is right as often on public examples: `constant` is always giving the
    likeliest answer, `version_0` the words about the classes alone. Such a version is `latest` only with a manager's
    word, which is `endorsement` then.

    Version 0 was not trained: its `estimator` says what it is made of, and its guarantee is a limit of nothing.

    `held_out` is entity F1 on private texts that a model of spans was not trained on, from noisy counts; else null.

    `rounds` are those whose questions it was trained on. Of a secret sample the size of the pool and the rate of its
    coins are given instead of the questions asked.
    """

    version: int
    state: Annotated[ReleaseState, Reads.LEDGER]
    retired_reason: Annotated[str, Reads.LEDGER]
    checks: Annotated[dict[str, str], Reads.MEASURED]
    checks_as_code: Annotated[dict[str, SaidOut], Reads.MEASURED] = {}
    held_back: Annotated[str, Reads.MEASURED]
    held_back_as_code: Annotated[SaidOut | None, Reads.MEASURED] = None
    beaten_by: Annotated[str, Reads.MEASURED]
    endorsement: Annotated[str, Reads.LEDGER]
    released_at: Annotated[Moment | None, Reads.LEDGER]
    estimator: str
    questions_asked: int | None
    pool_size: int | None
    sampling_rate: float | None
    rounds: list[int]
    created_at: Annotated[Moment, Reads.LEDGER]
    guarantee: list[TermsOut]
    configuration: dict[str, Any]
    environment: dict[str, str]
    public_key: str
    evaluations: list[EvaluationOut]
    held_out: Annotated[EntityF1Out | None, Reads.RELEASED] = None
    files: list[FileOut]
    lineage: list[LineageOut]


def model_out(
    release: ModelRelease, used: TrainedOn, estimate: PlannersEstimate | None, *, may_plan: bool
) -> dict[str, Any]:
    slug, version = release.project.slug, release.version
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
        "public_key": storage.signer().public_key,
        "evaluations": [
            evaluation_out(evaluation, estimate, may_plan=may_plan) for evaluation in release.evaluations.all()
        ],
        "held_out": _held_out(release),
        "files": _files(slug, str(version), release.digests),
        "lineage": list(selectors.lineage_of(release)),
    }


def described_out(described: DescribedRelease, *, may_plan: bool) -> dict[str, Any]:
    project = described.project
    account = project.pool_account
    promise = zero_promise(
        unit=account.unit, adjacency=account.adjacency, issued_at=described.created_at.date().isoformat()
    )
    return {
        "version": VERSION,
        "state": ReleaseState.RELEASED,
        "retired_reason": "",
        "checks": {},
        "held_back": "",
        "beaten_by": "",
        "endorsement": "",
        "released_at": described.created_at,
        "estimator": MARK,
        "questions_asked": 0,
        "pool_size": None,
        "sampling_rate": None,
        "rounds": [],
        "created_at": described.created_at,
        "guarantee": promise["accounts"],
        "configuration": settings_outside(configuration_of(project)),
        "environment": environment(),
        "public_key": storage.signer().public_key,
        "evaluations": [score_out(score, may_plan=may_plan) for score in described.scores],
        "files": _files(project.slug, str(VERSION), described.digests),
        "lineage": [],
    }


def _files(slug: str, version: str, digests: Mapping[str, str]) -> list[dict[str, str]]:
    def address(name: str) -> str:
        return reverse("api:get_file", args=(slug, version, name))

    return [{"name": name, "sha256": digest, "url": address(name)} for name, digest in sorted(digests.items())]


def _held_out(release: ModelRelease) -> dict[str, Any] | None:
    if not release.span_counts:
        return None
    found = held_out_score(release.span_counts)
    return {"spans": found.spans, "value": found.f1, "low": found.low, "high": found.high}
