"""The annotator's page: one question after the other, without a wait between them."""

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import UUID

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect

from annotation import selectors
from annotation.errors import NotMember
from annotation.forms import SKIP_REASONS, LabelForm, SkipForm
from annotation.images import png_of
from annotation.models import Assignment, Project
from annotation.services import labels, queue
from annotation.views.crowd import end_of_task

View = Callable[..., HttpResponse]
KEYS = "1234567890"


def annotator_page(view: View) -> View:
    """Ask for a login, also where only a part of a page was wanted, and keep what is shown out of every cache."""

    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)
        part = request.htmx  # type: ignore[attr-defined]
        login = redirect_to_login((part and part.current_url_abs_path) or request.get_full_path())
        return HttpResponseClientRedirect(login.url) if part else login

    return guarded


@annotator_page
def label(request: HttpRequest, slug: str) -> HttpResponse:
    """The question the person holds, else the next one, else why there is none."""
    project = _desk(request, slug)
    return _next_question(request, project, last_choice=project.last_choice)


@annotator_page
def submit(request: HttpRequest, assignment_id: UUID) -> HttpResponse:
    """Store an answer and show the next question."""
    assignment = _own(request, assignment_id)
    project = assignment.project
    if request.method != "POST":
        return _see_other(project)
    form = LabelForm(request.POST, project=project)
    if not form.is_valid():
        return _next_question(request, project, problem=str(form.errors["choice"][0]))
    choice = form.cleaned_data["choice"]
    labels.submit_label(assignment=assignment, choice=choice)
    if request.htmx:  # type: ignore[attr-defined]
        return _next_question(request, project, last_choice=choice)
    return _see_other(project)


@annotator_page
def skip(request: HttpRequest, assignment_id: UUID) -> HttpResponse:
    """Give a question back, with a reason."""
    assignment = _own(request, assignment_id)
    if request.method != "POST":
        return _see_other(assignment.project)
    form = SkipForm(request.POST)
    if not form.is_valid():
        return _next_question(request, assignment.project, problem=_("Choose one of the reasons to skip."))
    labels.skip_assignment(assignment=assignment, reason=form.cleaned_data["reason"])
    return label(request, assignment.project.slug) if request.htmx else _see_other(assignment.project)  # type: ignore[attr-defined]


@annotator_page
@require_POST
def undo(request: HttpRequest, slug: str) -> HttpResponse:
    """Take the last answer back and show its question again."""
    project = _desk(request, slug)
    earlier = project.last_choice
    labels.undo_label(project=project, user=request.user)  # type: ignore[arg-type]
    if not request.htmx:  # type: ignore[attr-defined]
        return _see_other(project)
    return _next_question(request, project, last_choice=_desk(request, slug).last_choice, earlier=earlier)


@annotator_page
def question_image(request: HttpRequest, assignment_id: UUID) -> HttpResponse:
    """The image a question is about."""
    mine = selectors.assignments_of(request.user).select_related("query__record__dataset")
    record = get_object_or_404(mine, pk=assignment_id).query.record
    if record is None or not record.dataset.pixels:
        raise Http404
    return HttpResponse(png_of(Path(record.dataset.pixels.path), record.row_number), content_type="image/png")


def _desk(request: HttpRequest, slug: str) -> Any:
    project: Any = get_object_or_404(selectors.desks_of(request.user), slug=slug)
    if not project.is_annotator:
        raise NotMember(_("Only annotators of this project are asked. Its manager can make you one."))
    return project


def _own(request: HttpRequest, assignment_id: UUID) -> Assignment:
    try:
        return selectors.held_by(request.user, assignment_id)
    except Assignment.DoesNotExist as absent:
        raise Http404 from absent


def _see_other(project: Project) -> HttpResponse:
    # 303, so that the browser asks for the next question by GET and a reload stores nothing again.
    page = reverse("annotation:label", args=(project.slug,))
    return HttpResponse(status=HTTPStatus.SEE_OTHER, headers={"Location": page})


def _next_question(
    request: HttpRequest,
    project: Project,
    *,
    last_choice: int | None = None,
    earlier: int | None = None,
    problem: str = "",
) -> HttpResponse:
    if (end := end_of_task(request, project)) is not None:
        return end
    assignment: Any = queue.claim_next(project=project, user=request.user)  # type: ignore[arg-type]
    if assignment is None:
        return _empty(request, project)
    keys = KEYS.ljust(len(project.classes))
    context = {
        "project": project,
        "assignment": assignment,
        "question": selectors.question_of(assignment),
        "choices": [(value, keys[value].strip(), name) for value, name in enumerate(project.classes)],
        "reasons": SKIP_REASONS,
        "done_today": assignment.done_today,
        "waiting": assignment.waiting,
        "goal": assignment.done_today + assignment.waiting + 1,
        "more_than": assignment.waiting > selectors.WAITING_SHOWN and selectors.WAITING_SHOWN,
        "last_answer": None if last_choice is None else project.classes[last_choice],
        "earlier": earlier,
        "problem": problem,
    }
    return _page(request, context, HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK)


def _empty(request: HttpRequest, project: Project) -> HttpResponse:
    state = queue.queue_state(project=project, user=request.user)  # type: ignore[arg-type]
    if request.GET.get("shown") == state:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    desk = _desk(request, project.slug)
    last_answer = None if desk.last_choice is None else project.classes[desk.last_choice]
    context = {"project": project, "state": str(state), "done_today": desk.done_today, "last_answer": last_answer}
    return _page(request, context, HTTPStatus.OK)


def _page(request: HttpRequest, context: dict[str, Any], status: int) -> HttpResponse:
    template = "annotation/_label.html" if request.htmx else "annotation/label.html"  # type: ignore[attr-defined]
    return render(request, template, context, status=status)
