"""What annotators are told, for the managers who write it."""

from http import HTTPStatus

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from annotation.access import managed_project
from annotation.errors import InvalidConfiguration
from annotation.guidelines.forms import GuidelinesForm, PictureForm
from annotation.guidelines.presenters import guidelines_parts
from annotation.guidelines.services import versions
from annotation.guidelines.services.pictures import guideline_pictures, names_of_pictures, shown_pictures
from annotation.guidelines.text import NAME_LENGTH, refuse_pictures_of_others, snippet_of
from annotation.models import Guidelines, Project
from annotation.people.identity import person_of


@login_required
def guidelines(request: HttpRequest, slug: str) -> HttpResponse:
    """What annotators are told; a change is a new version and everybody is told of it once."""
    project = managed_project(request, slug)
    if request.method != "POST":
        return guidelines_page(request, project)
    form = GuidelinesForm(request.POST, project=project)
    if not form.is_valid():
        return guidelines_page(request, project, form=form, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    if "preview" in request.POST:
        return guidelines_page(request, project, form=form, preview=Guidelines(**form.cleaned_data))
    saved = versions.save_guidelines(project=project, author=person_of(request), **form.cleaned_data)
    messages.success(request, _("Saved as version %(version)d.") % {"version": saved.version})
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
    """Show the guidelines to whoever writes them, as they stand or as they were typed."""
    current = versions.current_guidelines(project)
    initial = {"text": current.text, "examples": GuidelinesForm.written(current.examples, project.classes)}
    shown = preview or current
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
            for picture in guideline_pictures(project)
        ],
    }
    pictures = shown_pictures(project, shown.text, view="annotation:guideline_picture")
    return render(
        request,
        "annotation/guidelines/guidelines.html",
        context | guidelines_parts(project, shown, pictures),
        status=status,
    )


def _missing_picture(project: Project, text: str) -> str:
    """Say which line of the guidelines shows a picture that did not come with them."""
    try:
        refuse_pictures_of_others(text, names_of_pictures(project))
    except InvalidConfiguration as refusal:
        return str(refusal)
    return ""
