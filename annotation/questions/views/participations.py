"""The last page of whoever came by a crowd platform: the code that says that all is answered."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django_htmx.http import HttpResponseClientRedirect

from annotation import selectors
from annotation.models import Project
from annotation.models.joining import CrowdParticipant, Platform
from annotation.people.identity import person_of
from annotation.people.views.crowd import SESSION_KEY
from annotation.questions.services import participations


@login_required
@never_cache
def crowd_done(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the completion code once everything is answered, else how much is left."""
    project = get_object_or_404(selectors.projects_of(request.user), slug=slug)
    participant = participations.own_participation(
        participant_id=request.session.get(SESSION_KEY), user=person_of(request), project=project
    )
    context = {
        "project": project,
        "participant": participant,
        "is_complete": participations.complete(participant=participant),
        "answers": participations.answers_of(participant),
        "on_prolific": participant.link.platform == Platform.PROLIFIC,
    }
    return render(request, "annotation/questions/crowd_done.html", context)


def end_of_task(request: HttpRequest, project: Project) -> HttpResponse | None:
    """Send a participant who has answered everything to their code; nobody else is stopped here."""
    if SESSION_KEY not in request.session:
        return None
    participants = CrowdParticipant.objects.select_related("link")
    participant = participants.filter(pk=request.session[SESSION_KEY], link__project=project).first()
    if participant is None or not participations.is_done(participant):
        return None
    page = reverse("annotation:crowd_done", args=[project.slug])
    return HttpResponseClientRedirect(page) if request.htmx else redirect(page)  # type: ignore[attr-defined]
