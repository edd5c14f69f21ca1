"""Links for crowd platforms: a manager makes them, participants start and finish by them."""

from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.models import Oracle, Project, Role
from annotation.models.joining import CrowdLink, Platform
from annotation.people.forms.joining import PARAMETERS, ArrivalForm, CrowdLinkForm, filled_in
from annotation.people.identity import network_address, person_of
from annotation.people.services import crowd_links as service
from annotation.people.services.signed_arrivals import TOKEN
from annotation.selectors import projects_of
from annotation.work.services import rates

BACKEND = "dpal_site.accounts.logins.ByUserName"
SESSION_KEY = "crowd_participant"
TRIES, WINDOW_SECONDS = 30, 600


@login_required
@never_cache
def crowd_links(request: HttpRequest, slug: str) -> HttpResponse:
    """List the links of the project and make one; its address is shown this once."""
    project = managed_project(request, slug)
    form = CrowdLinkForm(request.POST or None)
    address = None
    if request.method == "POST" and form.is_valid():
        made, token = service.create_link(project=project, owner=person_of(request), **form.values())
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
    """Let nobody new in by this link."""
    project = managed_project(request, slug)
    service.revoke_link(link=get_object_or_404(project.crowd_links, pk=link_id))
    return redirect("annotation:crowd_links", slug=slug)


@never_cache
def crowd_start(request: HttpRequest, token: str) -> HttpResponse:
    """Say what is asked and what is kept; the button makes the account and shows the first question."""
    rates.count_try(what="crowd", who=network_address(request), limit=TRIES, seconds=WINDOW_SECONDS)
    link = service.find_link(token=token)
    arrival = _arrival(request.POST or request.GET, link)
    is_other = request.user.is_authenticated and SESSION_KEY not in request.session
    if request.method == "POST" and arrival.is_valid() and not arrival.is_preview and not is_other:
        participant = service.join(link=link, pid=arrival.cleaned_data["pid"])
        login(request, participant.user, backend=BACKEND)
        request.session[SESSION_KEY] = participant.pk
        return redirect("annotation:label", slug=link.project.slug)
    context = {"link": link, "arrival": arrival, "is_other": is_other, "valid": arrival.is_valid()}
    return render(request, "annotation/people/crowd_start.html", context, status=200 if arrival.is_valid() else 422)


def task_of(request: HttpRequest) -> Project | None:
    """Return the project whose link let the person in, as long as they are asked there; nobody else has such a task."""
    key = request.session.get(SESSION_KEY)
    if key is None:
        return None
    asked = projects_of(request.user, roles=(Role.ANNOTATOR,))
    return asked.filter(crowd_links__participants=key).first()


def _arrival(query: QueryDict, link: CrowdLink) -> ArrivalForm:
    names = PARAMETERS[Platform(link.platform)]
    sent = {name: query.get(name, "") for name in names.values()}
    signature = query.get(TOKEN, "") if link.signed else ""
    parameters = service.read_arrival(link=link, sent=sent, study=names["study"], signature=signature)
    return ArrivalForm(parameters, platform=link.platform, signature=signature)
