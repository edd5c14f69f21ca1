"""Groups of people: an administrator of the site keeps them, a manager gives them a role in a project."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.budget.action_words import action_sentence
from annotation.models.groups import GroupRole, PeopleGroup
from annotation.people import group_presenters
from annotation.people.forms.groups import GroupForm, GroupInvitationForm, GroupPeopleForm, GroupRoleForm
from annotation.people.group_presenters import KEEPS_GROUPS
from annotation.people.identity import note_nothing, person_of
from annotation.people.services import groups as service
from annotation.people.services import invitations, letters
from annotation.people.views.joining import invitations_page
from annotation.people.views.members import people_page


@login_required
@permission_required(KEEPS_GROUPS, raise_exception=True)
def groups(request: HttpRequest) -> HttpResponse:
    """List the groups and make one."""
    form = GroupForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = service.create_group(name=form.cleaned_data["name"], owner=person_of(request))
        return redirect("annotation:group", group_id=made.pk)
    context = {"form": form, "groups": group_presenters.groups()}
    return render(request, "annotation/people/groups.html", context, status=422 if form.errors else 200)


@login_required
@permission_required(KEEPS_GROUPS, raise_exception=True)
def group(request: HttpRequest, group_id: int) -> HttpResponse:
    """Who is in a group, where it has a role, and putting people in or taking them out."""
    found = get_object_or_404(PeopleGroup, pk=group_id)
    form = GroupPeopleForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        actor, people = person_of(request).get_username(), form.cleaned_data["people"]
        if "remove" in request.POST:
            number = service.remove_people(group=found, people=people, actor=actor)
            said = ngettext("%(number)d person left the group.", "%(number)d people left the group.", number)
        else:
            number = service.add_people(group=found, people=people, actor=actor)
            said = ngettext("%(number)d person is new in the group.", "%(number)d people are new in the group.", number)
        messages.success(request, said % {"number": number})
        return redirect("annotation:group", group_id=group_id)
    return _group_page(request, found, form=form)


def _group_page(request: HttpRequest, found: PeopleGroup, **forms: Any) -> HttpResponse:
    context = {
        "group": found,
        "form": GroupPeopleForm(),
        "name_form": GroupForm({"name": found.name}),
        "members": group_presenters.group_members(found),
        "roles": group_presenters.roles_of(found),
        "lines": [(action, action_sentence(action)) for action in group_presenters.actions_of(found)],
    } | forms
    return render(
        request, "annotation/people/group.html", context, status=422 if any(f.errors for f in forms.values()) else 200
    )


@login_required
@permission_required(KEEPS_GROUPS, raise_exception=True)
@require_POST
def rename_group(request: HttpRequest, group_id: int) -> HttpResponse:
    """Give a group another name."""
    found = get_object_or_404(PeopleGroup, pk=group_id)
    form = GroupForm(request.POST)
    if not form.is_valid():
        return _group_page(request, found, name_form=form)
    service.rename_group(group=found, name=form.cleaned_data["name"])
    return redirect("annotation:group", group_id=group_id)


@login_required
@permission_required(KEEPS_GROUPS, raise_exception=True)
@require_POST
def remove_from_group(request: HttpRequest, group_id: int, place_id: int) -> HttpResponse:
    """Take one person out of a group."""
    place = get_object_or_404(group_presenters.members_of_id(group_id), pk=place_id)
    service.remove_people(group=place.group, people=[place.user], actor=person_of(request).get_username())
    return redirect("annotation:group", group_id=group_id)


@login_required
@permission_required(KEEPS_GROUPS, raise_exception=True)
@require_POST
def delete_group(request: HttpRequest, group_id: int) -> HttpResponse:
    """End a group, once its name was typed."""
    found = get_object_or_404(PeopleGroup, pk=group_id)
    if request.POST.get("typed") != found.name:
        messages.error(request, _("Type the name of the group as it stands there."))
        note_nothing(request)
        return redirect("annotation:group", group_id=group_id)
    service.delete_group(group=found, actor=person_of(request).get_username())
    messages.success(request, _("The group is gone, and what it gave."))
    return redirect("annotation:groups")


@login_required
@permission_required(KEEPS_GROUPS, raise_exception=True)
@never_cache
def group_invitations(request: HttpRequest, group_id: int) -> HttpResponse:
    """List the live invitations into a group and make one; its link is shown this once."""
    found = get_object_or_404(PeopleGroup, pk=group_id)
    form = GroupInvitationForm(request.POST or None, by_mail=letters.leaves_the_site())
    return invitations_page(request, "annotation/people/group_invitations.html", form, {}, group=found)


@login_required
@permission_required(KEEPS_GROUPS, raise_exception=True)
@require_POST
def revoke_group_invitation(request: HttpRequest, group_id: int, invitation_id: int) -> HttpResponse:
    """End an invitation into a group."""
    found = get_object_or_404(PeopleGroup, pk=group_id)
    invitations.revoke_invitation(invitation=get_object_or_404(found.invitations, pk=invitation_id))
    return redirect("annotation:group_invitations", group_id=group_id)


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
