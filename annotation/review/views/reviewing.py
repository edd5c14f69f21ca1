"""One question after the other for whoever reviews: managers, and reviewers in front of experts."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation import selectors
from annotation.access import CLOSED, READING, REVIEWERS, refuse_if_closed
from annotation.choices.label_types.base import DIGITS
from annotation.models import Oracle, Project, Query, QueryState
from annotation.people.identity import note_nothing, person_of
from annotation.questions.forms import NONE_BOX, CommentForm
from annotation.questions.guidelines import guidelines_context
from annotation.questions.images import size_ahead
from annotation.questions.selectors.answers import answer_name, answer_names, names_several, places_in
from annotation.questions.views import label_parts
from annotation.review.forms import SettleForm
from annotation.review.images import reviewed_image
from annotation.review.selectors import reviewing
from annotation.review.services import reviewing as decisions


def _project(request: HttpRequest, slug: str) -> Project:
    allowed = selectors.projects_of(request.user, roles=REVIEWERS)
    project = get_object_or_404(selectors.seen_by(request.user, allowed), slug=slug)
    if request.method not in READING:
        refuse_if_closed(project)
    return project


@login_required
@never_cache
def review_queue(request: HttpRequest, slug: str) -> HttpResponse:
    project = _project(request, slug)
    person = person_of(request)
    manages = reviewing.is_manager(project, person)
    closed = project.state in CLOSED
    # What can only be read is leased to nobody.
    held = None if closed else decisions.claim_review(project=project, person=person)
    undoable = None if closed else reviewing.undoable_review(project, person)
    context: dict[str, Any] = {
        "project": project,
        "manages": manages,
        "closed": closed,
        "trusted": project.oracle == Oracle.TRUSTED,
        "class_digits": DIGITS[: len(answer_names(project))],
        "progress": reviewing.progress_of(project),
        "undoable": undoable and undoable.get_state_display(),
        **guidelines_context(project, view="annotation:guideline_picture"),
        **label_parts.list_of(project, typed=False),
    }
    if held is not None:
        context |= _sheet(project, held.query, manages=manages)
    return render(request, "annotation/review/review.html", context)


def _sheet(project: Project, query: Query, *, manages: bool) -> Mapping[str, Any]:
    agreed = reviewing.agreed_choice(query)
    accepted = [] if agreed is None else _sent(project, agreed)
    several = names_several(project)
    initial = {"choice": accepted if several or not accepted else accepted[0]}
    image_url = reverse("annotation:review_image", args=[project.slug, query.pk])
    question = selectors.shown_of(project, query, image_url=image_url)
    return {
        "query": query,
        "question": question,
        "image": question.image_url and size_ahead(query),
        "guess": None if query.guess is None else str(project.classes[query.guess]),
        "votes": reviewing.counted_votes(query),
        "is_disputed": query.state == QueryState.DISPUTED,
        "is_drawn": query.state == QueryState.IN_REVIEW,
        "agreed": None if agreed is None else answer_name(project, agreed),
        "accepted": accepted,
        "form": SettleForm(project=project, may_keep=manages, initial=initial),
        "comment_form": CommentForm(),
    }


def _sent(project: Project, choice: int) -> list[Any]:
    return list(places_in(project, choice)) or [NONE_BOX]


@login_required
@never_cache
def review_image(request: HttpRequest, slug: str, query_id: int) -> HttpResponse:
    return reviewed_image(request, _project(request, slug), query_id)


@login_required
@require_POST
def settle(request: HttpRequest, slug: str, query_id: int) -> HttpResponse:
    project, person = _project(request, slug), person_of(request)
    get_object_or_404(Query, pk=query_id, project=project)
    action = request.POST.get("action")
    if action == "ask" and reviewing.is_manager(project, person):
        decisions.ask_beyond_overlap(project=project, query_id=query_id)
    elif action == "leave" and reviewing.is_manager(project, person):
        decisions.leave_out_disputed(project=project, query_id=query_id)
    elif action == "skip":
        decisions.skip_review(project=project, person=person, query_id=query_id)
    elif action == "set_aside":
        decisions.set_aside_reviewed(project=project, person=person, query_id=query_id)
    elif action == "return":
        _send_back(request, project, query_id)
    else:
        _decide(request, project, query_id)
    return redirect("annotation:review", slug=slug)


def _send_back(request: HttpRequest, project: Project, query_id: int) -> None:
    form = CommentForm(request.POST)
    if form.is_valid():
        comment = form.cleaned_data["comment"]
        decisions.return_reviewed(project=project, person=person_of(request), query_id=query_id, comment=comment)
    else:
        messages.error(request, str(form.errors["comment"][0]))
        note_nothing(request)


def _decide(request: HttpRequest, project: Project, query_id: int) -> None:
    person = person_of(request)
    form = SettleForm(request.POST, project=project, may_keep=reviewing.is_manager(project, person))
    if form.is_valid():
        decisions.settle_reviewed(project=project, person=person, query_id=query_id, **form.cleaned_data)
    else:
        several = names_several(project)
        messages.error(request, str(form.errors["choice"][0]) if several else _("Choose one of the classes."))
        note_nothing(request)


@login_required
@require_POST
def undo_review(request: HttpRequest, slug: str) -> HttpResponse:
    """Take the last decision back and lease its question again, if no training has used it."""
    decisions.undo_review(project=_project(request, slug), person=person_of(request))
    return redirect("annotation:review", slug=slug)
