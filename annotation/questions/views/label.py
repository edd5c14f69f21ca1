"""The annotator's page: one question after the other, without a wait between them."""

from base64 import b64encode
from collections.abc import Callable
from datetime import time
from functools import wraps
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import HttpResponseClientRedirect, HttpResponseClientRefresh

from annotation import selectors
from annotation.choices.label_types.base import DIGITS, Teaching
from annotation.choices.plans import suggests
from annotation.choices.selections import why_asked
from annotation.data.services.pictures import ImageAhead, image_ahead
from annotation.errors import NotMember
from annotation.gates import receipts
from annotation.models import Assignment, Project, ReportKind
from annotation.questions import selectors as answers
from annotation.questions import work_limits
from annotation.questions.forms import CommentForm, FlagForm, LabelForm, SkipForm
from annotation.questions.guidelines import guidelines_context
from annotation.questions.images import held_image
from annotation.questions.services import correcting, flags, guidelines, labels, queue
from annotation.questions.services.spans import number_of_answer
from annotation.questions.views import label_parts
from annotation.questions.views.guidelines import served_picture
from annotation.questions.views.labelling import end_of_task
from annotation.questions.work_limits import waiting_for

AnnotatorView = Callable[..., HttpResponse]
NOT_INVITED = "annotation/questions/not_invited.html"
# A picture up to this size comes with its question, so that the next one is there at once, too.
IMAGE_IN_PAGE_BYTES = 48 * 1024


def annotator_page(view: AnnotatorView) -> AnnotatorView:
    """Ask for a login, also for parts of pages, and prevent caching."""

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
    is_waiting = request.htmx and request.GET.get("shown") == queue.QueueState.NOT_MEMBER  # type: ignore[attr-defined]
    try:
        project = desk_of(request, slug)
    except (Http404, NotMember) as refusal:
        # The same words whether there is such a project or not; somebody with another role knows that there is.
        context = {"reason": str(refusal) if isinstance(refusal, NotMember) else ""}
        status = HTTPStatus.FORBIDDEN if context["reason"] else HTTPStatus.NOT_FOUND
        return HttpResponse(status=204) if is_waiting else render(request, NOT_INVITED, context, status=status)
    if is_waiting:
        return HttpResponseClientRefresh()
    return _next_question(request, project, last=answers.last_done(project))


@annotator_page
def submit(request: HttpRequest, assignment_id: UUID) -> HttpResponse:
    assignment = _own(request, assignment_id)
    project = assignment.project
    if request.method != "POST":
        return _see_other(project)
    form = LabelForm(request.POST, project=project)
    if not form.is_valid():
        # What is ticked stays ticked, and what was answered before can still be taken back.
        last = answers.last_done(desk_of(request, project.slug))
        return _next_question(request, project, problem=_first_error(form), last=last, earlier=form.ticked)
    choice = number_of_answer(project, assignment.query_id, form.cleaned_data["choice"])
    labels.submit_label(assignment=assignment, choice=choice, key=form.cleaned_data["key"])
    if request.htmx:  # type: ignore[attr-defined]
        return _next_question(request, project, last=answers.answer_name(project, choice))
    return _see_other(project)


def _act(request: HttpRequest, assignment_id: UUID, form: Form, act: Callable[[Assignment, Any], Any]) -> HttpResponse:
    assignment = _own(request, assignment_id)
    project = assignment.project
    if request.method != "POST":
        return _see_other(project)
    if not form.is_valid():
        return _next_question(request, project, problem=_first_error(form))
    notice = act(assignment, form.cleaned_data)
    if not request.htmx:  # type: ignore[attr-defined]
        return _see_other(project)
    return _next_question(request, project, last=answers.last_done(desk_of(request, project.slug)), notice=notice)


@annotator_page
def skip(request: HttpRequest, assignment_id: UUID) -> HttpResponse:
    def act(assignment: Assignment, said: Any) -> str:
        labels.skip_assignment(assignment=assignment, reason=said["reason"])
        return ""

    return _act(request, assignment_id, SkipForm(request.POST), act)


@annotator_page
def flag(request: HttpRequest, assignment_id: UUID) -> HttpResponse:
    def act(assignment: Assignment, said: Any) -> str:
        kind = ReportKind(said["kind"])
        flags.flag_question(assignment=assignment, kind=kind, comment=said["comment"])
        if kind == ReportKind.BROKEN:
            return _("Sent.")
        return _("Flagged for a manager.")

    return _act(request, assignment_id, FlagForm(request.POST), act)


@annotator_page
def comment(request: HttpRequest, assignment_id: UUID) -> HttpResponse:
    def act(assignment: Assignment, said: Any) -> str:
        flags.comment_on(assignment=assignment, comment=said["comment"])
        return _("Sent.")

    return _act(request, assignment_id, CommentForm(request.POST), act)


@annotator_page
@require_POST
def undo(request: HttpRequest, slug: str) -> HttpResponse:
    project = desk_of(request, slug)
    undone = correcting.undo_last(project=project, user=request.user)  # type: ignore[arg-type]
    earlier = selectors.earlier_choice(undone)
    if not request.htmx:  # type: ignore[attr-defined]
        return _see_other(project)
    last = answers.last_done(desk_of(request, slug))
    return _next_question(request, project, last=last, earlier=earlier)


@annotator_page
@require_POST
def read_guidelines(request: HttpRequest, slug: str) -> HttpResponse:
    project = desk_of(request, slug)
    guidelines.mark_guidelines_seen(project=project, user=request.user)  # type: ignore[arg-type]
    if not request.htmx:  # type: ignore[attr-defined]
        return _see_other(project, "?guidelines=open#guidelines")
    return _next_question(request, project, last=answers.last_done(project), with_guidelines=True)


@annotator_page
def why(request: HttpRequest, slug: str) -> HttpResponse:
    project = desk_of(request, slug)
    context = {"project": project, "receipt": receipts.receipt_of(project), "why": why_asked(project.settings)}
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "annotation/questions/_why.html", context)
    context["asks"] = waiting_for(request.user, [project])[project.pk].asks
    return render(request, "annotation/questions/why.html", context)


@annotator_page
def question_image(request: HttpRequest, assignment_id: UUID) -> HttpResponse:
    mine = selectors.assignments_of(request.user).select_related("query")
    return held_image(get_object_or_404(mine, pk=assignment_id))


@login_required
@require_GET
def told_picture(request: HttpRequest, slug: str, digest: str) -> HttpResponse:
    return served_picture(request, desk_of(request, slug), digest)


def desk_of(request: HttpRequest, slug: str) -> Any:
    project: Any = get_object_or_404(selectors.desks_of(request.user), slug=slug)
    if not project.is_annotator:
        raise NotMember(_("Only annotators get questions. A manager of the project can add you."))
    return project


def _own(request: HttpRequest, assignment_id: UUID) -> Assignment:
    if (assignment := queue.held_by(request.user, assignment_id)) is None:
        raise Http404
    return assignment


def _first_error(form: Any) -> str:
    return str(next(iter(form.errors.values()))[0])


def _see_other(project: Project, suffix: str = "") -> HttpResponse:
    # 303, so that the browser asks for the next question by GET and a reload stores nothing again.
    page = reverse("annotation:label", args=(project.slug,)) + suffix
    return HttpResponse(status=HTTPStatus.SEE_OTHER, headers={"Location": page})


def _next_question(
    request: HttpRequest,
    project: Project,
    *,
    last: str | None = None,
    earlier: int | None = None,
    problem: str = "",
    notice: str = "",
    with_guidelines: bool = False,
) -> HttpResponse:
    if (end := end_of_task(request, project)) is not None:
        return end
    assignment: Any = queue.claim_next(project=project, user=request.user)  # type: ignore[arg-type]
    if assignment is None:
        return _empty(request, project, notice)
    if assignment.guidelines_seen is None:
        # Who comes for the first time is not told of a change.
        guidelines.mark_guidelines_seen(project=project, user=request.user)  # type: ignore[arg-type]
    question = selectors.question_of(assignment)
    ahead = _image_ahead(assignment) if question.image_url else None
    whole = not request.htmx  # type: ignore[attr-defined]
    parts = label_parts.parts_of(assignment, token=get_token(request), earlier=earlier, last=last, with_list=whole)
    context = {
        "project": project,
        "assignment": assignment,
        "question": question,
        "words": label_parts.words_of(project, question.text),
        "image": ahead,
        "image_source": _image_in_page(ahead),
        "guess": selectors.guess_of(assignment),
        "suggestion": answers.suggestion_of(assignment, question.text),
        "is_many": parts.is_many,
        "answer": parts.answer,
        "instead": parts.instead,
        "undo": parts.undo,
        "done_today": assignment.done_today,
        "an_hour": _rounded(assignment.an_hour),
        "waiting": assignment.waiting,
        "goal": assignment.done_today + assignment.waiting + 1,
        "more_than": assignment.waiting > selectors.WAITING_SHOWN and selectors.WAITING_SHOWN,
        "problem": problem,
        "notice": notice,
        "guidelines_changed": not with_guidelines
        and (assignment.guidelines_seen or project.guidelines_version) < project.guidelines_version,
        "with_guidelines": with_guidelines,
    }
    return _page(request, context, HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK)


def _rounded(an_hour: int | None) -> int | None:
    return an_hour and (10 * round(an_hour / 10) or an_hour)


def _image_ahead(assignment: Assignment) -> ImageAhead:
    project, record = assignment.project, assignment.query.record
    height, width = project.image_height or 0, project.image_width or 0
    if record is None or not record.dataset.pixels:
        return ImageAhead(width, height, None)
    return image_ahead(record, height=height, width=width, most_bytes=IMAGE_IN_PAGE_BYTES)


def _image_in_page(ahead: ImageAhead | None) -> str | None:
    if ahead is None or ahead.small is None:
        return None
    return f"data:{ahead.small.content_type};base64," + b64encode(ahead.small.content).decode()


def _empty(request: HttpRequest, project: Project, notice: str = "") -> HttpResponse:
    state = queue.queue_state(project=project, user=request.user)  # type: ignore[arg-type]
    if request.GET.get("shown") == state:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    desk = desk_of(request, project.slug)
    context = {
        "project": project,
        "state": str(state),
        "done_today": desk.done_today,
        "undo": label_parts.undo_of(project.slug, last=answers.last_done(desk), token=get_token(request)),
        "notice": notice,
        "zone": timezone.get_current_timezone_name(),
        "midnight": work_limits.next_time(time.min),
        "answers_cap": work_limits.answers_cap(project),
    }
    if state == queue.QueueState.QUIET_HOURS and project.quiet_from and project.quiet_until:
        context |= {
            "quiet_from": work_limits.next_time(project.quiet_from),
            "quiet_until": work_limits.next_time(project.quiet_until),
        }
    return _page(request, context, HTTPStatus.OK)


def _page(request: HttpRequest, context: dict[str, Any], status: int) -> HttpResponse:
    part = bool(request.htmx)  # type: ignore[attr-defined]
    if not part or context.get("with_guidelines"):
        project = context["project"]
        context |= guidelines_context(project, view="annotation:told_picture")
        if sent_back := getattr(project, "sent_back", 0):
            context["sent_back"] = sent_back
        asked = answers.label_type(project)
        if not part and asked.teaches != Teaching.CONFIRMATIONS:
            context |= label_parts.list_of(project, typed=True)
        context["keys_page"] = label_parts.keys_page(asked)
        context["is_many"] = label_parts.is_typed(asked, project.classes)
        context["own_keys"] = asked.lists_classes and bool(project.settings.get("class_keys"))
        context["class_digits"] = label_parts.keys_of_type(asked, answers.answer_names(project))[: len(DIGITS)]
        context["suggests"] = suggests(project.settings) is not None
        context["guidelines_open"] = part or request.GET.get("guidelines") == "open"
    return render(
        request,
        "annotation/questions/_label.html" if part else "annotation/questions/label.html",
        context,
        status=status,
    )
