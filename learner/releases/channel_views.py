"""The page of a project's channels: where each is, moving one, rolling one back; for managers."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from annotation.access import managed_project
from annotation.people.identity import person_of
from learner.models import ChannelMove, ReleaseState
from learner.pools import selectors
from learner.releases.services import channels

SHOWN_MOVES = 50


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
            messages.success(request, _("The channel is moved."))
        else:
            channels.roll_back_channel(project=project, channel=name, reason=reason, actor=actor)
            messages.success(request, _("The channel is rolled back."))
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
