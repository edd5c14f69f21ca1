"""How a project labels, for its managers: settings, guidelines, and what annotators report."""

from http import HTTPStatus

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.errors import InvalidConfiguration
from annotation.models import Guidelines, Project, Query
from annotation.people.identity import person_of
from annotation.questions import report_selectors
from annotation.questions.forms.labelling import GuidelinesForm, LabellingForm, PictureForm
from annotation.questions.forms.labels import FLAGS, SKIP_REASONS
from annotation.questions.guideline_text import NAME_LENGTH, refuse_pictures_of_others, snippet_of
from annotation.questions.services import guidelines as guidelines_service
from annotation.questions.services import reports, setting_aside
from annotation.questions.services.guideline_pictures import guideline_pictures, names_of_pictures, shown_pictures
from annotation.questions.services.labelling import set_labelling
from annotation.questions.views.label_parts import guidelines_parts


@login_required
def labelling(request: HttpRequest, slug: str) -> HttpResponse:
    """How questions are handed out and answered."""
    project = managed_project(request, slug)
    form = LabellingForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        set_labelling(project=project, actor=person_of(request), **form.cleaned_data)
        messages.success(request, _("Saved. Annotators notice it at their next question."))
        return redirect("annotation:labelling", slug=slug)
    context = {"project": project, "form": form, "waiting": report_selectors.count_for_managers(project)}
    return render(request, "annotation/questions/labelling.html", context, status=422 if form.errors else 200)


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
    saved = guidelines_service.save_guidelines(project=project, author=person_of(request), **form.cleaned_data)
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
    current = guidelines_service.current_guidelines(project)
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
        "annotation/questions/guidelines.html",
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


@login_required
def reported(request: HttpRequest, slug: str) -> HttpResponse:
    """Questions nobody gets further with, and what annotators say about others."""
    project = managed_project(request, slug)
    context = {
        "project": project,
        "set_aside": report_selectors.questions_set_aside(project, request.user),
        "others": report_selectors.reports_on_others(project),
        "readable": report_selectors.may_read_questions(project, request.user),
        "reasons": SKIP_REASONS | FLAGS,
    }
    return render(request, "annotation/questions/reported.html", context)


@login_required
@require_POST
def decide(request: HttpRequest, slug: str, query_id: int) -> HttpResponse:
    """Have a question asked again, or leave it out for good."""
    project = managed_project(request, slug)
    change = (
        setting_aside.ask_set_aside_again
        if request.POST.get("decision") == "ask"
        else setting_aside.leave_out_set_aside
    )
    try:
        change(project=project, query_id=query_id, user=person_of(request))
    except Query.DoesNotExist as absent:
        raise Http404 from absent
    return redirect("annotation:reported", slug=slug)


@login_required
@require_POST
def resolve(request: HttpRequest, slug: str, report_id: int) -> HttpResponse:
    """Take a report off the list."""
    project = managed_project(request, slug)
    report = get_object_or_404(project.reports, pk=report_id)
    reports.resolve_report(project=project, report_id=report.pk, user=person_of(request))
    return redirect("annotation:reported", slug=slug)
