"""The guidelines page and its pictures."""

from http import HTTPStatus

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation import selectors
from annotation.access import REVIEWERS, managed_project
from annotation.errors import InvalidConfiguration
from annotation.models import Guidelines, Project
from annotation.people.identity import person_of
from annotation.questions.forms import GuidelinesForm, PictureForm
from annotation.questions.guidelines import (
    NAME_LENGTH,
    current_guidelines,
    guidelines_context,
    picture_names,
    refuse_pictures_of_others,
    snippet_of,
)
from annotation.questions.services import guidelines as written


@login_required
def guidelines(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    if request.method != "POST":
        return guidelines_page(request, project)
    form = GuidelinesForm(request.POST, project=project)
    if not form.is_valid():
        return guidelines_page(request, project, form=form, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    if "preview" in request.POST:
        return guidelines_page(request, project, form=form, preview=Guidelines(**form.cleaned_data))
    written.save_guidelines(project=project, author=person_of(request), **form.cleaned_data)
    messages.success(request, _("Saved."))
    return redirect("annotation:guidelines", slug=slug)


def guidelines_page(
    request: HttpRequest,
    project: Project,
    *,
    form: GuidelinesForm | None = None,
    picture_form: PictureForm | None = None,
    preview: Guidelines | None = None,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    current = current_guidelines(project)
    initial = {"text": current.text, "examples": GuidelinesForm.written(current.examples, project.classes)}
    context = {
        "project": project,
        "form": form or GuidelinesForm(project=project, initial=initial),
        "current": current,
        "earlier": project.guideline_versions.exclude(version=current.version)
        .select_related("author")
        .order_by("-version"),
        "missing": _missing_picture(project, current.text),
        "picture_form": picture_form or PictureForm(),
        "pictures": [
            (picture, snippet_of(picture.digest[:NAME_LENGTH], picture.description))
            for picture in project.guideline_pictures.order_by("pk")
        ],
        **guidelines_context(project, view="annotation:guideline_picture", shown=preview or current),
    }
    return render(request, "annotation/questions/guidelines.html", context, status=status)


def _missing_picture(project: Project, text: str) -> str:
    try:
        refuse_pictures_of_others(text, picture_names(project))
    except InvalidConfiguration as refusal:
        return str(refusal)
    return ""


# A browser keeps a picture, and asks each time whether its reader may still see it.
ASKED_AGAIN = "private, no-cache"


@login_required
@require_POST
def add_guideline_picture(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = PictureForm(request.POST, request.FILES)
    if not form.is_valid():
        return guidelines_page(request, project, picture_form=form, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    written.add_guideline_picture(
        project=project,
        data=form.cleaned_data["file"].read(written.LARGEST_FILE + 1),
        description=form.cleaned_data["description"],
        by=person_of(request),
    )
    messages.success(request, _("Saved."))
    return redirect("annotation:guidelines", slug=slug)


@login_required
@require_POST
def drop_guideline_picture(request: HttpRequest, slug: str, digest: str) -> HttpResponse:
    project = managed_project(request, slug)
    picture = get_object_or_404(project.guideline_pictures, digest=digest)
    written.delete_guideline_picture(picture=picture)
    messages.success(request, _("Saved."))
    return redirect("annotation:guidelines", slug=slug)


@login_required
@require_GET
def guideline_picture(request: HttpRequest, slug: str, digest: str) -> HttpResponse:
    found = selectors.projects_of(request.user, roles=REVIEWERS)
    return served_picture(request, get_object_or_404(found, slug=slug), digest)


def served_picture(request: HttpRequest, project: Project, digest: str) -> HttpResponse:
    picture = get_object_or_404(project.guideline_pictures, digest=digest)
    etag = f'"{picture.digest}"'
    served = get_conditional_response(request, etag=etag)
    if served is None:
        served = HttpResponse(written.picture_content(picture), content_type="image/webp")
    served["Cache-Control"], served["ETag"] = ASKED_AGAIN, etag
    return served
