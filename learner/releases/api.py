"""REST routes of versions: taking one back, having one checked or offered, and what differs between two."""

from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest
from ninja import Field, Schema

from annotation.models import Project, Role
from annotation.people.identity import person_of
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, member_project, project_for, require_scope
from annotation.work.services.tokens import Scope
from learner.models import ModelRelease, ReleaseState
from learner.pools import selectors
from learner.releases import selectors as release_selectors
from learner.releases.evaluations import Accuracy
from learner.releases.services import checks, versions

router = RoomRouter()
KeptReason = Annotated[str, Field(min_length=1, max_length=300, description="Stays with it, and is told to webhooks.")]


class ReasonIn(Schema):
    """Why."""

    reason: KeptReason


class RetiredOut(Answer, reads=Reads.LEDGER):
    """A version that was taken back."""

    version: int
    state: ReleaseState
    retired_reason: str


class CheckedOut(Answer, reads=Reads.MANAGED):
    """A version that is checked again where it was held back; `held_back` is empty until the check is done."""

    version: int
    state: ReleaseState
    held_back: str


class EndorsedOut(Answer, reads=Reads.MANAGED):
    """A version that is offered although it does not beat a constant, and the reason that stays with it."""

    version: int
    reason: str


class BesideOut(Answer, reads=Reads.MEASURED):
    """References beside a version's accuracy on the same examples, as in its evaluation."""

    constant: float
    version_0: float | None
    macro_f1: float | None


class AccuracyOut(Answer, reads=Reads.MEASURED):
    """Accuracy on one public test set with its 95 % interval; null for a version that was not measured on it."""

    dataset: str
    measure: Literal["accuracy", "entity_f1"]
    before: tuple[float, float, float] | None = Field(description="Value, lower and upper end.")
    after: tuple[float, float, float] | None = Field(description="Value, lower and upper end.")
    beside_before: BesideOut | None
    beside_after: BesideOut | None


class ChangeOut(Answer, reads=Reads.MEASURED):
    """A number or a setting that differs; null where it was not there."""

    name: str
    before: Any
    after: Any


class ModelDifferenceOut(Answer, reads=Reads.MEASURED):
    """Differences of two versions: classes, the accounts' limits and spending, accuracy, settings, libraries.

    `weights_moved` is the L2 distance between the weights, null where classes or features differ.
    """

    before: int
    after: int
    classes_added: list[str]
    classes_removed: list[str]
    guarantee: list[ChangeOut]
    accuracy: list[AccuracyOut]
    configuration: list[ChangeOut]
    environment: list[ChangeOut]
    weights_moved: float | None


def readable_project(request: HttpRequest, slug: str) -> Project:
    require_scope(request, Scope.MODELS_READ)
    return member_project(request, slug, *selectors.MODEL_ROLES)


def existing_release(project: Project, version: str) -> ModelRelease:
    found = selectors.find_release(project, version)
    if found is None:
        raise Http404
    return found


@router.write(
    "projects/{slug:slug}/models/{version}/retire", response=RetiredOut, summary="Take a version back, with a reason"
)
def retire_model(request: HttpRequest, slug: str, version: str, body: ReasonIn) -> Any:
    release = existing_release(project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER), version)
    return versions.retire_release(release=release, reason=body.reason)


@router.write(
    "projects/{slug:slug}/models/{version}/check",
    response={202: CheckedOut},
    summary="Have a version that is held back checked again",
)
def check_again(request: HttpRequest, slug: str, version: str) -> Any:
    release = existing_release(project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER), version)
    checks.check_again(release=release)
    release.refresh_from_db()
    return {"version": release.version, "state": release.state, "held_back": str(release.held_back)}


@router.write(
    "projects/{slug:slug}/models/{version}/endorse",
    response=EndorsedOut,
    summary="Offer a version that does not beat a constant all the same, with a reason",
)
def endorse_model(request: HttpRequest, slug: str, version: str, body: ReasonIn) -> Any:
    release = existing_release(project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER), version)
    given = versions.endorse_release(release=release, reason=body.reason, actor=person_of(request))
    return {"version": release.version, "reason": given.reason}


@router.get(
    "projects/{slug:slug}/models/{version}/differences/{before}",
    response=ModelDifferenceOut,
    summary="What differs between two versions",
)
def get_model_difference(request: HttpRequest, slug: str, version: str, before: str) -> Any:
    project = readable_project(request, slug)
    after, earlier = existing_release(project, version), existing_release(project, before)
    found = release_selectors.difference(after, before=earlier, inside=False)
    return {
        "before": earlier.version,
        "after": after.version,
        "classes_added": found.classes[0],
        "classes_removed": found.classes[1],
        "guarantee": _changes(found.guarantee),
        "accuracy": [
            {
                "dataset": one.dataset,
                "measure": one.measure,
                "before": _ends(old),
                "after": _ends(new),
                "beside_before": _beside(old),
                "beside_after": _beside(new),
            }
            for one, old, new in found.accuracies
        ],
        "configuration": _changes(found.configuration),
        "environment": _changes(found.environment),
        "weights_moved": None if found.weights is None else found.weights.distance,
    }


def _changes(found: list[tuple[str, Any, Any]]) -> list[dict[str, Any]]:
    return [{"name": name, "before": before, "after": after} for name, before, after in found]


def _ends(accuracy: Accuracy | None) -> tuple[float, float, float] | None:
    return None if accuracy is None else (accuracy.value, accuracy.low, accuracy.high)


def _beside(accuracy: Accuracy | None) -> dict[str, float | None] | None:
    if accuracy is None:
        return None
    return {"constant": accuracy.constant, "version_0": accuracy.described, "macro_f1": accuracy.macro_f1}
