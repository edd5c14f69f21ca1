"""The annotator's page: one question after the other, without a wait between them."""

from collections.abc import Callable
from dataclasses import dataclass
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

View = Callable[..., HttpResponse]
KEYS = "1234567890"


@dataclass(frozen=True, slots=True)
class Pace:
    """What stands around a question: how far the person is, and what can still be taken back."""

    done_today: int
    waiting: int
    last_choice: int | None = None


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
    project, pace = _desk(request, slug)
    return _next_question(request, project, pace)


@annotator_page
def submit(request: HttpRequest, assignment_id: UUID) -> HttpResponse:
    """Store an answer and show the next question."""
    assignment, pace = _held(request, assignment_id)
    if request.method != "POST":
        return _see_other(assignment.project)
    form = LabelForm(request.POST, project=assignment.project)
    if not form.is_valid():
        return _question(request, assignment, pace, problem=str(form.errors["choice"][0]))
    choice = form.cleaned_data["choice"]
    labels.submit_label(assignment=assignment, choice=choice)
    return _onward(request, assignment.project, Pace(pace.done_today + 1, pace.waiting, choice))


@annotator_page
def skip(request: HttpRequest, assignment_id: UUID) -> HttpResponse:
    """Give a question back, with a reason."""
    assignment, pace = _held(request, assignment_id)
    if request.method != "POST":
        return _see_other(assignment.project)
    form = SkipForm(request.POST)
    if not form.is_valid():
        return _question(request, assignment, pace, problem=_("Choose one of the reasons to skip."))
    labels.skip_assignment(assignment=assignment, reason=form.cleaned_data["reason"])
    return _onward(request, assignment.project, pace)


@annotator_page
@require_POST
def undo(request: HttpRequest, slug: str) -> HttpResponse:
    """Take the last answer back and show its question again."""
    project, pace = _desk(request, slug)
    labels.undo_label(project=project, user=request.user)  # type: ignore[arg-type]
    if not request.htmx:  # type: ignore[attr-defined]
        return _see_other(project)
    return _next_question(request, *_desk(request, slug), earlier=pace.last_choice)


@annotator_page
def question_image(request: HttpRequest, assignment_id: UUID) -> HttpResponse:
    """The image a question is about."""
    mine = selectors.assignments_of(request.user).select_related("query__record__dataset")
    record = get_object_or_404(mine, pk=assignment_id).query.record
    if record is None or not record.dataset.pixels:
        raise Http404
    return HttpResponse(png_of(Path(record.dataset.pixels.path), record.row_number), content_type="image/png")


def _desk(request: HttpRequest, slug: str) -> tuple[Project, Pace]:
    project: Any = get_object_or_404(selectors.desks_of(request.user), slug=slug)
    if not project.is_annotator:
        raise NotMember(_("Only annotators of this project are asked. Its manager can make you one."))
    return project, Pace(project.done_today, project.waiting, project.last_choice)


def _held(request: HttpRequest, assignment_id: UUID) -> tuple[Assignment, Pace]:
    mine = selectors.assignments_of(request.user).select_related("query")
    with_pace = mine.annotate(**selectors.pace_of(request.user, project="project"))
    found: Any = get_object_or_404(with_pace, pk=assignment_id)
    return found, Pace(found.done_today, found.waiting)


def _see_other(project: Project) -> HttpResponse:
    # 303, so that the browser asks for the next question by GET and a reload stores nothing again.
    page = reverse("annotation:label", args=(project.slug,))
    return HttpResponse(status=HTTPStatus.SEE_OTHER, headers={"Location": page})


def _onward(request: HttpRequest, project: Project, pace: Pace) -> HttpResponse:
    return _next_question(request, project, pace) if request.htmx else _see_other(project)  # type: ignore[attr-defined]


def _next_question(request: HttpRequest, project: Project, pace: Pace, *, earlier: int | None = None) -> HttpResponse:
    assignment = queue.claim_next(project=project, user=request.user)  # type: ignore[arg-type]
    if assignment is not None:
        return _question(request, assignment, pace, earlier=earlier)
    state = queue.queue_state(project=project, user=request.user)  # type: ignore[arg-type]
    if request.GET.get("shown") == state:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    return _page(request, project, pace, {"state": str(state)})


def _question(
    request: HttpRequest,
    assignment: Assignment,
    pace: Pace,
    *,
    earlier: int | None = None,
    problem: str = "",
) -> HttpResponse:
    project = assignment.project
    keys = KEYS.ljust(len(project.classes))
    context = {
        "assignment": assignment,
        "question": selectors.question_of(assignment),
        "choices": [(value, keys[value].strip(), name) for value, name in enumerate(project.classes)],
        "reasons": SKIP_REASONS,
        "earlier": earlier,
        "problem": problem,
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK
    return _page(request, project, pace, context, status=status)


def _page(
    request: HttpRequest, project: Project, pace: Pace, context: dict[str, Any], status: int = HTTPStatus.OK
) -> HttpResponse:
    shown = {
        "project": project,
        "pace": pace,
        "goal": pace.done_today + pace.waiting + ("assignment" in context),
        "more_than": pace.waiting > selectors.WAITING_SHOWN and selectors.WAITING_SHOWN,
        "last_answer": None if pace.last_choice is None else project.classes[pace.last_choice],
        **context,
    }
    template = "annotation/_label.html" if request.htmx else "annotation/label.html"  # type: ignore[attr-defined]
    return render(request, template, shown, status=status)
