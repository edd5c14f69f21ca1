"""The list of projects, opening one, pausing it."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation import selectors
from annotation.access import managed_project, may_open
from annotation.budget.forms import MembershipForm
from annotation.choices.presets import PRESETS
from annotation.models import Arrival, DataKind, Oracle, Role
from annotation.people.identity import note_about, note_nothing, person_of
from annotation.people.views.crowd import task_of
from annotation.projects.forms.choosing import ChoosingForm
from annotation.projects.forms.pool import PoolProjectForm
from annotation.projects.forms.streams import StreamProjectForm
from annotation.projects.forms.wizard import sharing_terms
from annotation.projects.selectors import project_cards
from annotation.projects.services import opening


@login_required
def project_list(request: HttpRequest) -> HttpResponse:
    """Every project the person takes part in; who came by a crowd link has one task, and goes to that."""
    task = task_of(request)
    if task is not None:
        return redirect("annotation:label", slug=task.slug)
    closed = "closed" in request.GET
    cards = project_cards(user=request.user, closed=closed)
    context = {"cards": cards, "may_open": may_open(request), "closed": closed}
    return render(request, "annotation/projects/projects.html", context)


@login_required
def project(request: HttpRequest, slug: str) -> HttpResponse:
    """Send each person to the page of the project they come for."""
    found = get_object_or_404(selectors.projects_of(request.user), slug=slug)
    if selectors.projects_of(request.user, roles=(Role.MANAGER, Role.ENGINEER)).filter(pk=found.pk).exists():
        return redirect("learner:overview", slug=slug)
    if not selectors.projects_of(request.user, roles=(Role.ANNOTATOR,)).filter(pk=found.pk).exists():
        return redirect("annotation:review", slug=slug)
    return redirect("annotation:label", slug=slug)


@login_required
@permission_required("annotation.add_project", raise_exception=True)
def choose_preset(request: HttpRequest) -> HttpResponse:
    """The first step of a new project: what for."""
    presets = [
        {
            "preset": preset,
            # What follows the colon is said by the preset itself.
            "oracle": str(Oracle(preset.oracle).label).partition(":")[0],
            "kinds": [DataKind(kind).label for kind in preset.data_kinds],
        }
        for preset in PRESETS.values()
    ]
    return render(request, "annotation/projects/choose_preset.html", {"presets": presets})


@login_required
@permission_required("annotation.add_project", raise_exception=True)
def new_project(request: HttpRequest, preset: str) -> HttpResponse:
    """The second step: name, classes, budgets; the rest has defaults."""
    if preset not in PRESETS:
        raise Http404
    chosen = PRESETS[preset]
    form_class: type[ChoosingForm] = (
        StreamProjectForm if chosen.defaults.get("arrival") == Arrival.STREAM else PoolProjectForm
    )
    form = form_class(request.POST or None, preset=chosen)
    if request.method == "POST" and ("show" in request.POST or not form.settings_are_shown(request.POST)):
        note_nothing(request)
        form = form_class.shown_for(request.POST, preset=chosen)
        shown = MembershipForm(person=request.user, terms=sharing_terms(form), chosen=request.POST.dict())
        context = {"form": form, "membership": shown, "preset": chosen, "changed": True}
        return render(request, "annotation/projects/new_project.html", context)
    membership = MembershipForm(request.POST or None, person=request.user, terms=sharing_terms(form))
    if request.method == "POST" and form.is_valid() and membership.is_valid():
        values = form.project_values() | membership.cleaned_data
        project = opening.create_project(preset=preset, owner=person_of(request), **values)
        note_about(request, project.pk)
        stream = project.arrival == Arrival.STREAM
        messages.success(
            request,
            _("Project opened. Post its records next.") if stream else _("Project opened. Upload a pool next."),
        )
        return redirect("annotation:data", slug=project.slug)
    status = 422 if form.errors or membership.errors else 200
    context = {"form": form, "membership": membership, "preset": chosen}
    return render(request, "annotation/projects/new_project.html", context, status=status)


@login_required
@require_POST
def set_state(request: HttpRequest, slug: str) -> HttpResponse:
    """Pause or resume."""
    project = managed_project(request, slug)
    change = opening.pause_project if request.POST.get("state") == "paused" else opening.resume_project
    change(project=project)
    return redirect("annotation:project", slug=slug)
