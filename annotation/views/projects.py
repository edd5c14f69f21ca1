"""The list of projects, opening one, its people, pausing it."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation import group_sheets, selectors, sheets
from annotation.choosing_forms import ChoosingForm
from annotation.group_forms import GroupRoleForm
from annotation.identity import note_about, person_of
from annotation.joining_forms import MemberForm
from annotation.models import Arrival, DataKind, Membership, Oracle, Project, Role
from annotation.pool_forms import PoolProjectForm
from annotation.presets import PRESETS
from annotation.services import lifecycle, projects
from annotation.stream_forms import StreamProjectForm

READING = ("GET", "HEAD", "OPTIONS")


def managed_project(request: HttpRequest, slug: str, *, closed_too: bool = False) -> Project:
    """Return the project if the person manages it; else it does not exist for them.

    An archived or deleted one can only be read, but by what is there for such projects (`closed_too`).
    """
    project = get_object_or_404(selectors.projects_of(request.user, roles=(Role.MANAGER,)), slug=slug)
    if request.method not in READING and not closed_too:
        lifecycle.refuse_if_closed(project)
    return project


@login_required
def project_list(request: HttpRequest) -> HttpResponse:
    """Every project the person takes part in."""
    closed = "closed" in request.GET
    cards = sheets.project_cards(user=request.user, closed=closed)
    context = {"cards": cards, "may_open": may_open(request), "closed": closed}
    return render(request, "annotation/projects.html", context)


def may_open(request: HttpRequest) -> bool:
    """Say whether the person may open a project."""
    return request.user.has_perm("annotation.add_project")


@login_required
def project(request: HttpRequest, slug: str) -> HttpResponse:
    """Send each person to the page of the project they come for."""
    found = get_object_or_404(selectors.projects_of(request.user), slug=slug)
    if selectors.projects_of(request.user, roles=(Role.MANAGER, Role.ENGINEER)).filter(pk=found.pk).exists():
        return redirect("learner:overview", slug=slug)
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
    return render(request, "annotation/choose_preset.html", {"presets": presets})


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
        form = form_class.shown_for(request.POST, preset=chosen)
        return render(request, "annotation/new_project.html", {"form": form, "preset": chosen, "changed": True})
    if request.method == "POST" and form.is_valid():
        project = projects.create_project(preset=preset, owner=person_of(request), **form.project_values())
        note_about(request, project.pk)
        stream = project.arrival == Arrival.STREAM
        messages.success(
            request,
            _("Project opened. Post its records next.") if stream else _("Project opened. Upload a pool next."),
        )
        return redirect("annotation:data", slug=project.slug)
    status = 422 if form.errors else 200
    return render(request, "annotation/new_project.html", {"form": form, "preset": chosen}, status=status)


@login_required
@require_POST
def set_state(request: HttpRequest, slug: str) -> HttpResponse:
    """Pause or resume."""
    project = managed_project(request, slug)
    change = projects.pause_project if request.POST.get("state") == "paused" else projects.resume_project
    change(project=project)
    return redirect("annotation:project", slug=slug)


@login_required
def people(request: HttpRequest, slug: str) -> HttpResponse:
    """Who takes part, and giving somebody a role."""
    project = managed_project(request, slug)
    form = MemberForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        projects.add_member(project=project, user=form.cleaned_data["username"], role=form.cleaned_data["role"])
        return redirect("annotation:people", slug=slug)
    return people_page(request, project, form=form)


def people_page(request: HttpRequest, project: Project, **forms: Form) -> HttpResponse:
    """Show who takes part and where each role comes from, with a form that was sent in the place of an empty one."""
    context = {
        "project": project,
        "form": MemberForm(),
        "group_form": GroupRoleForm(),
        "people": group_sheets.people_of(project),
        "groups": group_sheets.groups_in(project),
    } | forms
    status = 422 if any(form.errors for form in forms.values()) else 200
    return render(request, "annotation/people.html", context, status=status)


@login_required
@require_POST
def remove_member(request: HttpRequest, slug: str, membership_id: int) -> HttpResponse:
    """Take a role away; what the person labelled stays."""
    project = managed_project(request, slug)
    membership = get_object_or_404(Membership, pk=membership_id, project=project)
    if membership.user_id == request.user.pk and membership.role == Role.MANAGER:
        messages.error(request, _("You cannot take the manager's role from yourself."))
    else:
        projects.remove_member(project=project, user=membership.user, role=membership.role)
    return redirect("annotation:people", slug=slug)
