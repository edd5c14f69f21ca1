"""Roles of groups in a project, given and taken by its managers."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.models.groups import GroupRole
from annotation.people.forms.groups import GroupRoleForm
from annotation.people.identity import person_of
from annotation.people.services import groups as service
from annotation.people.views.members import people_page


@login_required
@require_POST
def give_group_role(request: HttpRequest, slug: str) -> HttpResponse:
    """Give a group a role in a project."""
    project = managed_project(request, slug)
    form = GroupRoleForm(request.POST)
    if not form.is_valid():
        return people_page(request, project, group_form=form)
    service.give_role(group=form.cleaned_data["group"], project=project, role=form.cleaned_data["role"])
    return redirect("annotation:people", slug=slug)


@login_required
@require_POST
def take_group_role(request: HttpRequest, slug: str, given_id: int) -> HttpResponse:
    """Take a role in a project from a group."""
    project = managed_project(request, slug)
    given = get_object_or_404(GroupRole.objects.select_related("group"), pk=given_id, project=project)
    service.refuse_own_way_out(given=given, user=person_of(request))
    service.take_role(given=given)
    return redirect("annotation:people", slug=slug)
