"""Invitations: a manager makes them, whoever holds one joins."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation import selectors
from annotation.access import managed_project
from annotation.models import Role
from annotation.people.forms.joining import InvitationForm
from annotation.people.identity import network_address, note_about, note_nothing, person_of
from annotation.people.services import invitations as service
from annotation.people.services import letters, mail_choices
from annotation.work.services import rates

TRIES, WINDOW_SECONDS = 30, 600


@login_required
@never_cache
def invitations(request: HttpRequest, slug: str) -> HttpResponse:
    """List the live invitations and make one; its link is shown this once."""
    project = managed_project(request, slug)
    leaves = letters.leaves_the_site()
    form = InvitationForm(request.POST or None, by_mail=leaves)
    link = sent_to = None
    if request.method == "POST" and form.is_valid():
        values = form.values()
        _invitation, secret = letters.invite(owner=person_of(request), project=project, **values)
        link, sent_to = request.build_absolute_uri(reverse("annotation:join", args=[secret])), values.get("address", "")
        form = InvitationForm(by_mail=leaves)
    context = {
        "project": project,
        "roles": dict(Role.choices),
        "form": form,
        "link": link,
        "sent_to": sent_to,
        "leaves": leaves,
        "invitations": service.live_invitations().filter(project=project).select_related("letter").order_by("-pk"),
    }
    return render(request, "annotation/people/invitations.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def revoke_invitation(request: HttpRequest, slug: str, invitation_id: int) -> HttpResponse:
    """End an invitation of the project."""
    project = managed_project(request, slug)
    service.revoke_invitation(invitation=get_object_or_404(project.invitations, pk=invitation_id))
    return redirect("annotation:invitations", slug=slug)


@never_cache
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """Say what the invitation is for; a person with an account takes it by one button."""
    rates.count_try(what="join", who=network_address(request), limit=TRIES, seconds=WINDOW_SECONDS)
    invitation = service.find_invitation(secret=secret)
    if request.method == "POST" and request.user.is_authenticated:
        if not service.accept_invitation(invitation=invitation, user=person_of(request)):
            note_nothing(request)
        mail_choices.keep_language(person=person_of(request), language=get_language() or settings.LANGUAGE_CODE)
        request.session.pop("invitation", None)
        note_about(request, invitation.project_id)
        messages.success(request, _("Welcome to the project."))
        return redirect("annotation:project", slug=invitation.project.slug)
    # Lets the visitor open an account, which otherwise takes an administrator.
    request.session["invitation"] = invitation.pk
    context = {
        "invitation": invitation,
        "role": Role(invitation.role).label,
        "is_participant": selectors.is_participant(request.user),
    }
    return render(request, "annotation/people/join.html", context)
