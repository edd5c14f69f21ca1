"""Pages of people: members, groups, invitations, crowd links, tokens and mails."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation import selectors
from annotation.access import managed_project
from annotation.models import ApiToken, Membership, Oracle, Project, Role
from annotation.models.joining import CrowdLink, Platform
from annotation.models.people import GroupRole
from annotation.models.quality import Machine
from annotation.people import selectors as people_selectors
from annotation.people.forms import (
    PARAMETERS,
    ArrivalForm,
    CrowdLinkForm,
    GroupRoleForm,
    InvitationForm,
    MailForm,
    MemberForm,
    TokenForm,
    filled_in,
)
from annotation.people.identity import network_address, note_about, note_nothing, person_of
from annotation.people.services import crowd_links as link_service
from annotation.people.services import invitations as invitation_service
from annotation.people.services import letters, limits, members
from annotation.people.services import members as group_service
from annotation.people.services.crowd_links import TOKEN
from annotation.selectors import projects_of
from annotation.wording import localized
from annotation.work.services import idempotency
from annotation.work.services import tokens as token_service


@login_required
def people(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = MemberForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        user, role = form.cleaned_data["username"], form.cleaned_data["role"]
        if role != Role.MANAGER:
            members.add_member(project=project, user=user, role=role)
        elif limits.appoint_manager(project=project, user=user, actor=person_of(request)) is not None:
            messages.info(request, _("Waiting for another manager's approval. Nothing has changed yet."))
            return redirect("annotation:limit_requests", slug=slug)
        return redirect("annotation:people", slug=slug)
    return people_page(request, project, form=form)


def people_page(request: HttpRequest, project: Project, **forms: Form) -> HttpResponse:
    context = {
        "project": project,
        "machines": set(Machine.objects.filter(project=project).values_list("user_id", flat=True)),
        "form": MemberForm(),
        "group_form": GroupRoleForm(),
        "people": people_selectors.project_people(project),
        "groups": people_selectors.groups_in(project),
    } | forms
    status = 422 if any(form.errors for form in forms.values()) else 200
    return render(request, "annotation/people/people.html", context, status=status)


@login_required
@require_POST
def remove_member(request: HttpRequest, slug: str, membership_id: int) -> HttpResponse:
    project = managed_project(request, slug)
    membership = get_object_or_404(Membership, pk=membership_id, project=project)
    if members.is_own_way_out(membership=membership, user=person_of(request)):
        messages.error(request, localized(members.OWN_WAY_OUT))
        note_nothing(request)
    else:
        ended = members.remove_member(project=project, user=membership.user, role=membership.role)
        if ended:
            messages.info(request, _("Also revoked: their invitations and crowd links (%s).") % ", ".join(ended))
    return redirect("annotation:people", slug=slug)


@login_required
@require_POST
def give_group_role(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = GroupRoleForm(request.POST)
    if not form.is_valid():
        return people_page(request, project, group_form=form)
    group_service.give_role(group=form.cleaned_data["group"], project=project, role=form.cleaned_data["role"])
    return redirect("annotation:people", slug=slug)


@login_required
@require_POST
def take_group_role(request: HttpRequest, slug: str, given_id: int) -> HttpResponse:
    project = managed_project(request, slug)
    given = get_object_or_404(GroupRole.objects.select_related("group"), pk=given_id, project=project)
    group_service.refuse_own_way_out(given=given, user=person_of(request))
    group_service.take_role(given=given)
    return redirect("annotation:people", slug=slug)


TRIES, WINDOW_SECONDS = 30, 600


@login_required
@never_cache
def invitations(request: HttpRequest, slug: str) -> HttpResponse:
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
        "invitations": invitation_service.live_invitations()
        .filter(project=project)
        .select_related("letter")
        .order_by("-pk"),
    }
    return render(request, "annotation/people/invitations.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def revoke_invitation(request: HttpRequest, slug: str, invitation_id: int) -> HttpResponse:
    project = managed_project(request, slug)
    invitation_service.revoke_invitation(invitation=get_object_or_404(project.invitations, pk=invitation_id))
    return redirect("annotation:invitations", slug=slug)


@never_cache
def join(request: HttpRequest, secret: str) -> HttpResponse:
    idempotency.count_try(what="join", who=network_address(request), limit=TRIES, seconds=WINDOW_SECONDS)
    invitation = invitation_service.find_invitation(secret=secret)
    if request.method == "POST" and request.user.is_authenticated:
        if not invitation_service.accept_invitation(invitation=invitation, user=person_of(request)):
            note_nothing(request)
        letters.keep_language(person=person_of(request), language=get_language() or settings.LANGUAGE_CODE)
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


BACKEND = "dpal_site.accounts.logins.ByUserName"
SESSION_KEY = "crowd_participant"
TRIES, WINDOW_SECONDS = 30, 600


@login_required
@never_cache
def crowd_links(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = CrowdLinkForm(request.POST or None)
    address = None
    if request.method == "POST" and form.is_valid():
        made, token = link_service.create_link(project=project, owner=person_of(request), **form.values())
        path = reverse("annotation:crowd_start", args=[token])
        address = request.build_absolute_uri(path) + filled_in(made.platform)
        form = CrowdLinkForm()
    links = [
        {"link": link, "people": link.participants.count()}
        for link in project.crowd_links.filter(revoked_at=None).order_by("-pk")
    ]
    context = {
        "project": project,
        "form": form,
        "address": address,
        "links": links,
        "is_crowd": project.oracle == Oracle.CROWD,
    }
    return render(request, "annotation/people/crowd_links.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def revoke_crowd_link(request: HttpRequest, slug: str, link_id: int) -> HttpResponse:
    project = managed_project(request, slug)
    link_service.revoke_link(link=get_object_or_404(project.crowd_links, pk=link_id))
    return redirect("annotation:crowd_links", slug=slug)


@never_cache
def crowd_start(request: HttpRequest, token: str) -> HttpResponse:
    idempotency.count_try(what="crowd", who=network_address(request), limit=TRIES, seconds=WINDOW_SECONDS)
    link = link_service.find_link(token=token)
    arrival = _arrival(request.POST or request.GET, link)
    is_other = request.user.is_authenticated and SESSION_KEY not in request.session
    if request.method == "POST" and arrival.is_valid() and not arrival.is_preview and not is_other:
        participant = link_service.join(link=link, pid=arrival.cleaned_data["pid"])
        login(request, participant.user, backend=BACKEND)
        request.session[SESSION_KEY] = participant.pk
        return redirect("annotation:label", slug=link.project.slug)
    context = {"link": link, "arrival": arrival, "is_other": is_other, "valid": arrival.is_valid()}
    return render(request, "annotation/people/crowd_start.html", context, status=200 if arrival.is_valid() else 422)


def task_of(request: HttpRequest) -> Project | None:
    key = request.session.get(SESSION_KEY)
    if key is None:
        return None
    asked = projects_of(request.user, roles=(Role.ANNOTATOR,))
    return asked.filter(crowd_links__participants=key).first()


def _arrival(query: QueryDict, link: CrowdLink) -> ArrivalForm:
    names = PARAMETERS[Platform(link.platform)]
    sent = {name: query.get(name, "") for name in names.values()}
    signature = query.get(TOKEN, "") if link.signed else ""
    parameters = link_service.read_arrival(link=link, sent=sent, study=names["study"], signature=signature)
    return ArrivalForm(parameters, platform=link.platform, signature=signature)


@login_required
@never_cache
def tokens(request: HttpRequest) -> HttpResponse:
    form = TokenForm(request.POST or None)
    secret = None
    if request.method == "POST" and form.is_valid():
        _, secret = token_service.create_token(
            user=person_of(request),
            name=form.cleaned_data["name"],
            scopes=form.cleaned_data["scopes"],
            lifetime=form.lifetime(),
        )
        form = TokenForm()
    context = {"form": form, "secret": secret, "tokens": token_service.live_tokens(user=person_of(request))}
    return render(request, "annotation/people/tokens.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    token = get_object_or_404(ApiToken, pk=token_id, user=request.user)
    if token.revoked_at is not None:
        note_nothing(request)
    token_service.revoke_token(token=token)
    return redirect("annotation:tokens")


@login_required
@never_cache
def mails(request: HttpRequest) -> HttpResponse:
    person = person_of(request)
    choice = letters.choice_of(person)
    form = MailForm(request.POST or None, initial={"wanted": choice.wanted, "language": choice.language})
    if request.method == "POST" and form.is_valid():
        letters.choose_mails(person=person, **form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("annotation:mails")
    context = {"form": form, "address": letters.mail_address(person), "leaves": letters.leaves_the_site()}
    return render(request, "annotation/people/mails.html", context, status=422 if form.errors else 200)
