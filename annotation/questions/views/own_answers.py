"""A person's own answers: read again, changed until a training may have used them, and talked about with managers."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation import selectors
from annotation.models import Assignment, Project, Role
from annotation.people.identity import person_of
from annotation.questions import selectors as presenters
from annotation.questions.forms import CommentForm, LabelForm
from annotation.questions.selectors import marks_spans, names_several, offered_answers, reply_refusal
from annotation.questions.services import correcting, flags
from annotation.questions.services.spans import number_of_answer
from annotation.work.rest import row_id

UNREAD = "unread"


def _project(request: HttpRequest, slug: str) -> Project:
    return get_object_or_404(selectors.projects_of(request.user, roles=(Role.ANNOTATOR,)), slug=slug)


@login_required
@never_cache
def own_answers(request: HttpRequest, slug: str) -> HttpResponse:
    project = _project(request, slug)
    unread = request.GET.get("only") == UNREAD
    page = presenters.own_answers(
        project, person_of(request), before=row_id(request.GET.get("before", "")), unread=unread
    )
    choices = offered_answers(project)
    context = {
        "project": project,
        "page": page,
        "choices": choices,
        "takes_several": names_several(project),
        "marks_spans": marks_spans(project),
        "only": UNREAD if unread else "",
        "writes_back": reply_refusal(project) is None,
    }
    return render(request, "annotation/questions/own_answers.html", context)


@login_required
@require_POST
def correct_answer(request: HttpRequest, slug: str, query_id: int) -> HttpResponse:
    project = _project(request, slug)
    get_object_or_404(Assignment, project=project, query=query_id, annotator=person_of(request))
    form = LabelForm(request.POST, project=project)
    if form.is_valid():
        choice = number_of_answer(project, query_id, form.cleaned_data["choice"])
        correcting.correct_answer(project=project, user=person_of(request), query_id=query_id, choice=choice)
        messages.success(request, _("Saved."))
    else:
        messages.error(request, str(next(iter(form.errors.values()))[0]))
    return _back(request, slug)


@login_required
@require_POST
def write_back(request: HttpRequest, slug: str, query_id: int) -> HttpResponse:
    project = _project(request, slug)
    own = Assignment.objects.filter(project=project, query=query_id, annotator=person_of(request))
    assignment = get_object_or_404(own.select_related("project"))
    form = CommentForm(request.POST)
    if "read" in request.POST:
        flags.mark_read(assignment=assignment)
    elif form.is_valid():
        flags.comment_on(assignment=assignment, comment=form.cleaned_data["comment"])
        messages.success(request, _("Sent."))
    else:
        messages.error(request, str(next(iter(form.errors.values()))[0]))
    return _back(request, slug)


def _back(request: HttpRequest, slug: str) -> HttpResponse:
    response = redirect("annotation:own_answers", slug=slug)
    if request.POST.get("only") == UNREAD:
        response["Location"] += f"?only={UNREAD}"
    return response
