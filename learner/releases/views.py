"""Pages of releases: one version with its promise, measures, files and changes, and the channels of a project."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.budget import presenters
from annotation.budget.words import what_words
from annotation.choices.measures import measure_of
from annotation.models import DataKind, Project
from annotation.people.identity import person_of
from annotation.projects.forms.settings import setting_value
from annotation.wording import class_name, localized
from learner.access import Costed, may_manage, project_of, release_of
from learner.charts import pages as page_charts
from learner.charts.geometry import Chart
from learner.models import ChannelMove, Evaluation, ModelRelease, ReleaseState
from learner.pools import selectors
from learner.pools.configuration import featurizer_of
from learner.releases import evaluations as evaluation_selectors
from learner.releases import selectors as release_selectors
from learner.releases import storage
from learner.releases.artifacts.signatures import signer_key_id
from learner.releases.cards.described import VERSION
from learner.releases.cards.page import card_html
from learner.releases.evaluations import Accuracy
from learner.releases.no_privacy import estimate_of_run
from learner.releases.services import channels, checks, described, versions
from learner.releases.span_measures import held_out_score
from privacy.ledger.models import SETTLEMENTS

# A matrix of more classes is wider than any screen.
MATRIX_CLASSES = 30
SHOWN_MOVES = 50
# What the gate before a release looks at, by the names it stores.
CHECKS = {
    "entries": gettext_lazy("Entries of the ledger"),
    "files": gettext_lazy("Files"),
    "ledger": gettext_lazy("Audit of the ledger"),
    "mechanism": gettext_lazy("Audit of the mechanism"),
}


@login_required
def release(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    if version == VERSION:
        return _described_page(request, project_of(request, slug))
    found = release_of(request, slug, version)
    managing = may_manage(request, found.project)
    signer = storage.signer()
    before = _compared(request, found)
    offered = found.state != ReleaseState.CANDIDATE and not found.is_buried
    history = evaluation_selectors.accuracy_history(found.project, up_to=version)
    context = {
        "project": found.project,
        "release": found,
        "checks": [(CHECKS.get(name, name), localized(said)) for name, said in sorted(found.checks.items())],
        "estimator": setting_value("estimator", found.estimator),
        "rounds": selectors.rounds_behind(found.training_run),
        "used": selectors.trained_on(found.training_run),
        "accuracies": evaluation_selectors.accuracies_of(found),
        "held_out": held_out_score(found.span_counts) if found.span_counts else None,
        "estimate": estimate_of_run(found.training_run),
        "measured": [_measured(evaluation, found) for evaluation in found.evaluations.all()],
        "history": history,
        "history_chart": _history_chart(found.project, history),
        "sheets": presenters.budget_sheets(found.project),
        "difference": None if before is None else release_selectors.difference(found, before=before, inside=managing),
        "others": [one.version for one in selectors.releases_of(found.project) if one.version != version],
        "channels": [move.channel for move in selectors.channels_of(found.project) if move.release == found],
        "lineage": _lineage(found),
        "files": sorted(found.digests.items()),
        "offered": offered,
        "card": _card(storage.card_of(release=found)) if offered else None,
        "configuration": release_selectors.shown_configuration(found),
        "environment": sorted(found.environment.items()),
        "public_key": signer.public_key,
        "key_id": signer_key_id(signer.public_key),
        "may_manage": managing,
        "beaten_by": selectors.beaten_by(found),
        "thresholds": release_selectors.abstaining_of(found),
        "help": what_helps(found.project),
        "renamed": _renamed(found),
        "api_address": request.build_absolute_uri(reverse("api:get_model", args=(slug, str(version)))),
    }
    return render(request, "learner/releases/release.html", context)


def _renamed(release: ModelRelease) -> str:
    """Return the classes of a model that have another name by now."""
    now = release.project.renamed_classes
    return ", ".join(f"{name} → {now[name]}" for name in release.weights["classes"] if name in now)


def _described_page(request: HttpRequest, project: Project) -> HttpResponse:
    found = described.described_release(project)
    context = {
        "project": project,
        "accuracies": [
            replace(evaluation_selectors.accuracy_of(evaluation_selectors.evaluation_of(one)), described=None)
            for one in found.scores
        ],
        "created_at": found.created_at,
        "files": sorted(found.digests.items()),
        "version": VERSION,
        "card": _card(found.card),
        "public_key": storage.signer().public_key,
        "api_address": request.build_absolute_uri(reverse("api:get_model", args=(project.slug, str(VERSION)))),
    }
    return render(request, "learner/releases/version_zero.html", context)


def _card(file: str | None) -> SafeString | None:
    return None if file is None else mark_safe(card_html(file))  # noqa: S308 - escaped there


def _compared(request: HttpRequest, release: ModelRelease) -> ModelRelease | None:
    number = selectors.version_number(request.GET.get("with") or "0")
    named = selectors.releases_of(release.project).filter(version=number or 0).exclude(pk=release.pk).first()
    return named or release_selectors.version_before(release)


def _measured(evaluation: Evaluation, release: ModelRelease) -> dict[str, Any]:
    found = evaluation.measures
    # A class that was added since stands behind those that were measured.
    classes = [class_name(name) for name in release.project.classes[: len(found.get("recall", ()))]]
    sets = "precision" in found
    matrix = bool(found) and not sets
    return {
        "dataset": evaluation.dataset,
        "accuracy": evaluation_selectors.accuracy_of(evaluation),
        "measures": found,
        "classes": classes,
        "as_matrix": len(classes) <= MATRIX_CLASSES,
        "rows": list(zip(classes, map(_heated, found["confusion"]), found["recall"], strict=True)) if matrix else [],
        "reliability_chart": page_charts.reliability_chart(found["reliability"]) if found else None,
        "taken_for": _taken_for(classes, found) if matrix and len(classes) > MATRIX_CLASSES else [],
        "by_class": _by_class(classes, found) if sets else [],
    }


def _by_class(classes: Sequence[str], found: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return a class's name, recall and precision, and of spans its entity F1."""
    scores = found.get("f1", [None] * len(classes))
    return list(zip(classes, found["recall"], found["precision"], scores, strict=True))


def _heated(row: Sequence[int]) -> list[tuple[int, int]]:
    whole = sum(row)
    return [(number, round(5 * number / whole) if whole else 0) for number in row]


def _taken_for(classes: Sequence[str], found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a line for each class with what it is most often taken for, where a matrix would fill many screens."""
    lines = []
    for place, (name, row, recall) in enumerate(zip(classes, found["confusion"], found["recall"], strict=True)):
        other = max((column for column in range(len(row)) if column != place), key=row.__getitem__)
        lines.append({"name": name, "recall": recall, "other": classes[other], "times": row[other]})
    return lines


def what_helps(project: Project) -> list[str]:
    hints = []
    if project.data_kind == DataKind.TEXT and not featurizer_of(project).knows_words:
        hints.append(_("A sentence encoder instead of hashed words."))
    if project.data_kind == DataKind.TEXT and not project.settings.get("class_descriptions"):
        hints.append(_("Class descriptions; they are free."))
    if len(project.classes) > 2:
        hints.append(_("Fewer classes, or more questions about rare ones."))
    hints.append(_("Fewer releases with more answers each."))
    hints.append(_("A larger limit (see the plan)."))
    return hints


@require_POST
@login_required
def endorse(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    found = release_of(request, slug, version)
    if not may_manage(request, found.project):
        raise PermissionDenied(_("Only a manager can do this."))
    versions.endorse_release(release=found, reason=request.POST.get("reason", ""), actor=person_of(request))
    messages.success(request, _("Released as the latest."))
    return redirect("learner:release", slug=slug, version=version)


@require_POST
@login_required
def check_again(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    found = release_of(request, slug, version)
    if not may_manage(request, found.project):
        raise PermissionDenied(_("Only a manager can do this."))
    checks.check_again(release=found)
    messages.success(request, _("The release is being checked again."))
    return redirect("learner:release", slug=slug, version=version)


@login_required
def accuracy_plot(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    found = release_of(request, slug, version)
    history = evaluation_selectors.accuracy_history(found.project, up_to=version)
    return page_charts.picture_of(
        _history_chart(found.project, history),
        title=_("%(measure)s by version") % {"measure": measure_of(found.project)},
        caption=_("%(measure)s on public data, with 95-percent intervals.") % {"measure": measure_of(found.project)},
    )


def _history_chart(project: Project, history: Sequence[tuple[int, Accuracy]]) -> Chart | None:
    named = [(one.dataset, number, one) for number, one in history]
    return page_charts.accuracy_chart(named, measure=measure_of(project))


@login_required
def measure_plot(request: HttpRequest, slug: str, version: int, dataset_id: int) -> HttpResponse:
    found = release_of(request, slug, version)
    evaluation = get_object_or_404(found.evaluations, dataset_id=dataset_id)
    return page_charts.picture_of(
        page_charts.reliability_chart(evaluation.measures.get("reliability") or []),
        title=_("Calibration"),
        caption=_("Share right by confidence; the line is perfect calibration."),
    )


def _lineage(release: ModelRelease) -> list[tuple[str, str, Costed, int]]:
    project = release.project
    uploads = {str(pk): name for pk, name in project.datasets.values_list("pk", "name")}
    return [
        (
            presenters.account_title(project, entry.account),
            what_words(kind=entry.kind, subject=said.subject, purpose=said.purpose, event=said.event, uploads=uploads),
            Costed.of(entry, entry),
            entry.parent.sequence if entry.kind in SETTLEMENTS and entry.parent is not None else entry.sequence,
        )
        for entry in selectors.lineage_of(release)
        # What settles a reservation leaves the words to it.
        for said in (entry if entry.purpose or entry.parent is None else entry.parent,)
    ]


@login_required
def channel_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    if request.method == "POST":
        name, reason = request.POST.get("channel", "").strip(), request.POST.get("reason", "")
        actor = person_of(request)
        if chosen := request.POST.get("version", ""):
            release = selectors.find_release(project, chosen)
            if release is None:
                raise Http404
            channels.move_channel(release=release, channel=name, reason=reason, actor=actor)
            messages.success(request, _("Saved."))
        else:
            channels.roll_back_channel(project=project, channel=name, reason=reason, actor=actor)
            messages.success(request, _("Saved."))
        return redirect("learner:channels", slug=slug)
    moves = ChannelMove.objects.filter(project=project).select_related("release", "moved_by").order_by("-pk")
    context = {
        "project": project,
        "latest": selectors.latest_release(project),
        "channels": selectors.channels_of(project),
        "moves": moves[:SHOWN_MOVES],
        "versions": [one.version for one in selectors.releases_of(project).filter(state=ReleaseState.RELEASED)],
    }
    return render(request, "learner/releases/channels.html", context)
