"""Pages of a project's progress and of its released models."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation.budget import presenters
from annotation.models import Project
from annotation.projects.selectors import project_card
from annotation.work.polling import moving_page, part_of_page
from learner.access import Costed, managed_project_of, may_manage, project_of, release_of
from learner.dashboard import guidance
from learner.dashboard.guidance import guidance_for
from learner.models import ModelRelease
from learner.pools import records, selectors
from learner.pools.records import TrainedOn, labels_in_secret
from learner.releases import evaluations as evaluation_selectors
from learner.releases import selectors as release_selectors
from learner.releases.cards.described import VERSION
from learner.releases.downloads import described_response, file_response
from learner.releases.evaluations import Accuracy
from learner.releases.no_privacy import estimate_of_run, with_estimates
from learner.releases.services import described, versions
from learner.rounds.next_step import project_status
from learner.rounds.services import loop, selection
from learner.simulation.estimates import PlannersEstimate

SHOWN_ROUNDS = 20


ReleaseRow = tuple[ModelRelease, TrainedOn, list[Accuracy], PlannersEstimate | None]


def _rows(project: Project) -> list[ReleaseRow]:
    return [
        (release, used, evaluation_selectors.accuracies_of(release), estimate)
        for release, used, estimate in with_estimates(list(selectors.releases_of(project)))
    ]


def _newest(project: Project, rows: Sequence[ReleaseRow] = ()) -> dict[str, Any]:
    newest = selectors.newest_release(project)
    known = next((row[-1] for row in rows if row[0] == newest), None)
    estimate = known if rows or newest is None else estimate_of_run(newest.training_run)
    return {
        "project": project,
        "newest": newest,
        "version_zero": described.offers_version_zero(project),
        "measured": [] if newest is None else evaluation_selectors.accuracies_of(newest),
        "estimate": estimate,
    }


def _standing(project: Project) -> dict[str, Any]:
    return {
        "project": project,
        "counts": selectors.question_counts(project),
        "secret": records.labels_in_secret(project),
        "sheets": presenters.budget_sheets(project),
    }


@login_required
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    """Next step, progress, spending and releases; engineers come for the releases alone."""
    project = project_of(request, slug)
    if not may_manage(request, project):
        return redirect("learner:releases", slug=slug)
    facts = (release_selectors.release_facts(project), selectors.round_facts(project))
    return moving_page(request, "learner/overview.html", facts, lambda: _overview(project))


def _overview(project: Project) -> dict[str, Any]:
    rows = _rows(project)
    context = _newest(project, rows)
    return context | {
        **_standing(project),
        "rounds": [Costed.of(chosen, chosen.committed_entry) for chosen in selectors.rounds_of(project)[:SHOWN_ROUNDS]],
        "rows": rows,
        "may_manage": True,
    }


@login_required
@never_cache
def standing(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project_of(request, slug)
    if "newest" in request.GET:
        return part_of_page(request, "learner/_newest.html", _newest(project))
    return part_of_page(request, "learner/_standing.html", _standing(project))


@login_required
@never_cache
def next_step(request: HttpRequest, slug: str) -> HttpResponse:
    context = guidance.next_step_context(managed_project_of(request, slug), request.user)
    return part_of_page(request, "learner/_next_step.html", context)


@login_required
@never_cache
def card(request: HttpRequest, slug: str) -> HttpResponse:
    project = project_of(request, slug)
    managing = may_manage(request, project)
    context: dict[str, Any] = {"project": project, "card": project_card(project), "may_manage": managing}
    if managing:
        context |= {"guidance": guidance_for(project), "counts": selectors.question_counts(project)}
        context["secret"] = records.labels_in_secret(project)
    return part_of_page(request, "learner/_card.html", context)


@login_required
def release_list(request: HttpRequest, slug: str) -> HttpResponse:
    project = project_of(request, slug)
    managing = may_manage(request, project)
    released = release_selectors.release_facts(project)
    # Before the first version managers read there what the project waits for.
    is_told = managing and not released
    work = (selectors.round_facts(project), selectors.question_counts(project)) if is_told else ()
    return moving_page(
        request,
        "learner/releases.html",
        (released, work),
        lambda: {
            "project": project,
            "rows": _rows(project),
            "may_manage": managing,
            "has_shares": labels_in_secret(project),
            "waits_for": project_status(project).sentence if is_told else "",
            "version_zero": described.offers_version_zero(project),
        },
    )


@login_required
def retire(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    found = release_of(request, slug, version)
    if not may_manage(request, found.project):
        raise PermissionDenied(_("Only a manager can do this."))
    if request.method == "POST":
        versions.retire_release(release=found, reason=request.POST.get("reason", ""))
        messages.success(request, _("Saved."))
        return redirect("learner:release", slug=slug, version=version)
    return render(request, "learner/retire.html", {"project": found.project, "release": found})


@login_required
def close_block(request: HttpRequest, slug: str) -> HttpResponse:
    """Close the open secret block before its time; what is not agreed on by then counts as empty."""
    project = project_of(request, slug)
    if not may_manage(request, project):
        raise PermissionDenied(_("Only a manager can do this."))
    block = records.open_block(project)
    if block is None:
        raise Http404
    if request.method == "POST":
        selection.close_block(project=project)
        messages.success(request, _("Block closed; its model is being trained."))
        return redirect("learner:overview", slug=slug)
    context = {"project": project, "open_block": block, "counts": selectors.question_counts(project)}
    context["price"] = selectors.training_price(project)
    return render(request, "learner/close_block.html", context)


@login_required
@require_POST
def train_on_few(request: HttpRequest, slug: str) -> HttpResponse:
    """Train on what is there although it is less than the project declares for a model."""
    project = project_of(request, slug)
    if not may_manage(request, project):
        raise PermissionDenied(_("Only a manager can do this."))
    run = loop.train_on_few(project=project)
    messages.success(request, _("Version %(version)d is being trained.") % {"version": run.version})
    return redirect("learner:overview", slug=slug)


@login_required
def release_file(request: HttpRequest, slug: str, version: int, name: str) -> HttpResponseBase:
    if version == VERSION:
        return described_response(request, described.described_release(project_of(request, slug)), name)
    return file_response(request, release_of(request, slug, version), name)
