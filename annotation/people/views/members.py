"""The page of the people of a project."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.models import Membership, Project, Role
from annotation.models.machines import MachineAnnotator
from annotation.people import group_presenters
from annotation.people.forms.groups import GroupRoleForm
from annotation.people.forms.joining import MemberForm
from annotation.people.identity import note_nothing, person_of
from annotation.people.services import limits, members
from annotation.wording import localized


@login_required
def people(request: HttpRequest, slug: str) -> HttpResponse:
    """Who takes part, and giving somebody a role."""
    project = managed_project(request, slug)
    form = MemberForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        user, role = form.cleaned_data["username"], form.cleaned_data["role"]
        if role != Role.MANAGER:
            members.add_member(project=project, user=user, role=role)
        elif limits.appoint_manager(project=project, user=user, actor=person_of(request)) is not None:
            messages.info(request, _("Another manager has to approve this. Nothing has changed yet."))
            return redirect("annotation:limit_requests", slug=slug)
        return redirect("annotation:people", slug=slug)
    return people_page(request, project, form=form)


def people_page(request: HttpRequest, project: Project, **forms: Form) -> HttpResponse:
    """Show who takes part and where each role comes from, with a form that was sent in the place of an empty one."""
    context = {
        "project": project,
        "machines": set(MachineAnnotator.objects.filter(project=project).values_list("user_id", flat=True)),
        "form": MemberForm(),
        "group_form": GroupRoleForm(),
        "people": group_presenters.project_people(project),
        "groups": group_presenters.groups_in(project),
    } | forms
    status = 422 if any(form.errors for form in forms.values()) else 200
    return render(request, "annotation/people/people.html", context, status=status)


@login_required
@require_POST
def remove_member(request: HttpRequest, slug: str, membership_id: int) -> HttpResponse:
    """Take a role away; what the person labelled stays."""
    project = managed_project(request, slug)
    membership = get_object_or_404(Membership, pk=membership_id, project=project)
    if members.is_own_way_out(membership=membership, user=person_of(request)):
        messages.error(request, localized(members.OWN_WAY_OUT))
        note_nothing(request)
    else:
        members.remove_member(project=project, user=membership.user, role=membership.role)
    return redirect("annotation:people", slug=slug)
