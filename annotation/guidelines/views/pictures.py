"""Pictures of the guidelines: managers add and delete them, and whoever writes or reviews sees them."""

from http import HTTPStatus

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation import selectors
from annotation.access import REVIEWERS, managed_project
from annotation.guidelines.forms import PictureForm
from annotation.guidelines.services import pictures as guideline_pictures
from annotation.guidelines.views.versions import guidelines_page
from annotation.models import Project
from annotation.people.identity import person_of

# A browser keeps a picture, and asks each time whether its reader may still see it.
ASKED_AGAIN = "private, no-cache"


@login_required
@require_POST
def add_guideline_picture(request: HttpRequest, slug: str) -> HttpResponse:
    """Keep a picture and show the line that puts it into the guidelines."""
    project = managed_project(request, slug)
    form = PictureForm(request.POST, request.FILES)
    if not form.is_valid():
        return guidelines_page(request, project, picture_form=form, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    guideline_pictures.add_guideline_picture(
        project=project,
        data=form.cleaned_data["file"].read(guideline_pictures.LARGEST_FILE + 1),
        description=form.cleaned_data["description"],
        by=person_of(request),
    )
    messages.success(request, _("The picture is kept. Its line stands under it."))
    return redirect("annotation:guidelines", slug=slug)


@login_required
@require_POST
def drop_guideline_picture(request: HttpRequest, slug: str, digest: str) -> HttpResponse:
    """Delete a picture that the guidelines do not show."""
    project = managed_project(request, slug)
    picture = get_object_or_404(guideline_pictures.guideline_pictures(project), digest=digest)
    guideline_pictures.delete_guideline_picture(picture=picture)
    messages.success(request, _("The picture is deleted."))
    return redirect("annotation:guidelines", slug=slug)


@login_required
@require_GET
def guideline_picture(request: HttpRequest, slug: str, digest: str) -> HttpResponse:
    """A picture of the guidelines, for whoever writes or reviews by them."""
    found = selectors.projects_of(request.user, roles=REVIEWERS)
    return served_picture(request, get_object_or_404(found, slug=slug), digest)


def served_picture(request: HttpRequest, project: Project, digest: str) -> HttpResponse:
    """Answer with a picture of the guidelines, or say that the browser has it."""
    picture = get_object_or_404(guideline_pictures.guideline_pictures(project), digest=digest)
    etag = f'"{picture.digest}"'
    served = get_conditional_response(request, etag=etag)
    if served is None:
        served = HttpResponse(bytes(picture.content), content_type="image/webp")
    served["Cache-Control"], served["ETag"] = ASKED_AGAIN, etag
    return served
