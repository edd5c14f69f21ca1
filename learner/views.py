"""Pages of a project's progress and of its released models."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation import sheets
from annotation.models import Membership, Project, Role
from annotation.services import lifecycle
from learner import secret_selectors, selectors
from learner.downloads import file_response
from learner.intervals import wilson_interval
from learner.models import Evaluation, ModelRelease
from learner.plan_selectors import plan_forecast
from learner.secret_selectors import TrainedOn
from learner.services import releases, secret_rounds
from privacy.accounting.units import atto_spent, nano_spent
from privacy.models import LedgerEntry

SHOWN_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Measured:
    """An evaluation in percent, as pages show it."""

    dataset: str
    examples: int
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Costed:
    """A ledger entry, or a round with its entry, and what it cost."""

    what: Any
    epsilon: float | None
    delta: float | None

    @classmethod
    def of(cls, what: Any, entry: LedgerEntry | None) -> "Costed":
        """Put the cost of `entry` beside `what`; both are empty where nothing was committed."""
        if entry is None:
            return cls(what, None, None)
        return cls(what, nano_spent(entry.epsilon_nano or 0), atto_spent(entry.delta_atto))


def project_of(request: HttpRequest, slug: str) -> Project:
    """Return a project whose releases the person may see; an archived or deleted one can only be read."""
    project = get_object_or_404(selectors.projects_with_models(request.user), slug=slug)
    if request.method == "POST":
        lifecycle.refuse_if_closed(project)
    return project


def release_of(request: HttpRequest, slug: str, version: int) -> ModelRelease:
    """Return a release of a project whose releases the person may see."""
    return get_object_or_404(selectors.releases_of(project_of(request, slug)), version=version)


def _measured(release: ModelRelease) -> list[Measured]:
    return [_percent(evaluation) for evaluation in release.evaluations.all()]


def _rows(project: Project) -> list[tuple[ModelRelease, TrainedOn, list[Measured]]]:
    """Return each release with what may be said of what it was trained on, and how well it does."""
    found = selectors.releases_of(project)
    return [(release, selectors.trained_on(release.training_run), _measured(release)) for release in found]


def _percent(evaluation: Evaluation) -> Measured:
    low, high = wilson_interval(evaluation.correct, evaluation.examples)
    accuracy = 100 * evaluation.correct / evaluation.examples
    return Measured(evaluation.dataset.name, evaluation.examples, accuracy, 100 * low, 100 * high)


def may_manage(request: HttpRequest, project: Project) -> bool:
    """Say whether the person manages the project."""
    return Membership.objects.filter(project=project, user=request.user.pk, role=Role.MANAGER).exists()


def _standing(project: Project) -> dict[str, Any]:
    return {
        "project": project,
        "status": selectors.project_status(project),
        "counts": selectors.question_counts(project),
        "newest": selectors.latest_release(project),
        "open_block": secret_selectors.open_block(project),
        "secret": secret_selectors.labels_in_secret(project),
    }


@login_required
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    """Where a project stands, what it has spent, what it has released; engineers come for the releases alone.

    How many questions are answered or disputed depends on what the records hold, so it is for those inside.
    """
    project = project_of(request, slug)
    if not may_manage(request, project):
        return redirect("learner:releases", slug=slug)
    context = _standing(project) | {
        "sheets": sheets.budget_sheets(project),
        "forecast": plan_forecast(project),
        "rounds": [Costed.of(chosen, chosen.committed_entry) for chosen in selectors.rounds_of(project)[:SHOWN_ROUNDS]],
        "rows": _rows(project),
        "may_manage": True,
    }
    return render(request, "learner/overview.html", context)


@login_required
def standing(request: HttpRequest, slug: str) -> HttpResponse:
    """The moving part of the overview alone."""
    project = project_of(request, slug)
    if not may_manage(request, project):
        raise Http404
    return render(request, "learner/_standing.html", _standing(project))


@login_required
def release_list(request: HttpRequest, slug: str) -> HttpResponse:
    """Every release, newest first."""
    project = project_of(request, slug)
    status = selectors.project_status(project) if may_manage(request, project) else None
    return render(request, "learner/releases.html", {"project": project, "rows": _rows(project), "status": status})


@login_required
def retire(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    """Take a release back, with a reason."""
    found = release_of(request, slug, version)
    if not may_manage(request, found.project):
        raise PermissionDenied(_("Only a manager of the project can retire a release."))
    if request.method == "POST":
        releases.retire_release(release=found, reason=request.POST.get("reason", ""))
        messages.success(request, _("The release is retired; its files and its entries stay."))
        return redirect("learner:release", slug=slug, version=version)
    return render(request, "learner/retire.html", {"project": found.project, "release": found})


@login_required
def close_block(request: HttpRequest, slug: str) -> HttpResponse:
    """Close the open secret block before its time; what is not agreed on by then counts as empty."""
    project = project_of(request, slug)
    if not may_manage(request, project):
        raise PermissionDenied(_("Only a manager of the project can close a block."))
    block = secret_selectors.open_block(project)
    if block is None:
        raise Http404
    if request.method == "POST":
        secret_rounds.close_block(project=project)
        messages.success(request, _("The block is closed; its model is trained now."))
        return redirect("learner:overview", slug=slug)
    context = {"project": project, "open_block": block, "counts": selectors.question_counts(project)}
    return render(request, "learner/close_block.html", context)


@login_required
def release_file(request: HttpRequest, slug: str, version: int, name: str) -> HttpResponseBase:
    """Download a file."""
    return file_response(request, release_of(request, slug, version), name)
