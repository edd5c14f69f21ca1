"""Pages of quality, of the data manager and of the review queue."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation import selectors
from annotation.access import CLOSED, READING, REVIEWERS, managed_project, refuse_if_closed
from annotation.budget.action_words import SENTENCES
from annotation.budget.downloads import csv_response
from annotation.choices.label_types.base import DIGITS
from annotation.models import Membership, Oracle, Project, Query, QueryState, Role
from annotation.models.quality import GoldQuery, Machine, PauseReason
from annotation.people.identity import note_nothing, person_of
from annotation.questions.forms import NONE_BOX, CommentForm
from annotation.questions.guidelines import guidelines_context
from annotation.questions.images import image_response, size_ahead
from annotation.questions.selectors import (
    answer_name,
    answer_names,
    checks_in_use,
    label_type,
    marks_spans,
    may_read_questions,
    names_several,
    places_in,
    reply_refusal,
    reports_of,
)
from annotation.questions.services import checks as gold
from annotation.questions.services import labelling
from annotation.questions.services.spans import number_of_answer
from annotation.questions.views import label_parts
from annotation.review import selectors as browsing
from annotation.review import selectors as presenters
from annotation.review import selectors as reviewing
from annotation.review import services
from annotation.review import services as comparing
from annotation.review import services as decisions
from annotation.review.forms import ChecksForm, ChosenForm, QualityForm, QuestionFilter, SettleForm
from annotation.review.images import readable_image, reviewed_image
from annotation.review.selectors import QuestionEvent, drawn_reviews, waiting_for_review
from annotation.review.services import change_chosen
from annotation.review.suggestion_effect import effect_of
from annotation.wording import class_name
from annotation.work.polling import moving_page
from annotation.work.rest import row_id
from privacy.choices import Kind

CHECKS_AT_ONCE = 50


@login_required
def quality(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = QualityForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        labelling.set_quality(project=project, actor=person_of(request), **form.values())
        messages.success(request, _("Saved."))
        return redirect("annotation:quality", slug=slug)
    if form.errors:
        return render(request, "annotation/review/quality.html", _shown(project, form), status=422)
    return moving_page(
        request, "annotation/review/quality.html", presenters.quality_facts(project), lambda: _shown(project, form)
    )


def _shown(project: Project, form: QualityForm) -> dict[str, Any]:
    people = presenters.annotators_work(project)
    return {
        "project": project,
        "form": form,
        "checks_form": ChecksForm(project=project),
        "people": [(sheet, gold.is_warned(project, sheet.checks)) for sheet in people],
        "checks": GoldQuery.objects.filter(query__project=project, retired_at=None).count(),
        "coefficient": _(label_type(project).coefficient.label),
        "report": getattr(project, "quality_report", None),
        "waiting": waiting_for_review(project).count(),
        "drawn": drawn_reviews(project),
        "effect": effect_of(project),
        "machines": set(Machine.objects.filter(project=project).values_list("user_id", flat=True)),
    }


@login_required
@require_POST
def add_checks(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = ChecksForm(request.POST, project=project)
    if form.is_valid():
        added = gold.add_public_checks(project=project, owner=person_of(request), **form.cleaned_data)
        messages.success(request, ngettext("%(n)d check was added.", "%(n)d checks were added.", added) % {"n": added})
    else:
        messages.error(request, _("Choose a public upload with labels."))
        note_nothing(request)
    return redirect("annotation:quality", slug=slug)


@login_required
@never_cache
def checks(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    found = checks_in_use(project)
    rows = [
        {
            "check": check,
            "right": check.answered - check.wrong,
            "known": answer_name(project, check.choice),
            "question": selectors.shown_of(
                project, check.query, image_url=reverse("annotation:check_image", args=[slug, check.query_id])
            ),
        }
        for check in found[:CHECKS_AT_ONCE]
    ]
    context = {"project": project, "rows": rows, "left": max(0, found.count() - CHECKS_AT_ONCE)}
    return render(request, "annotation/review/checks.html", context)


@login_required
@never_cache
def check_image(request: HttpRequest, slug: str, query_id: int) -> HttpResponse:
    found = Query.objects.filter(project=managed_project(request, slug), state=QueryState.GOLD)
    return image_response(get_object_or_404(found.select_related("record__dataset"), pk=query_id).record)


@login_required
@require_POST
def retire_check(request: HttpRequest, slug: str, check_id: int) -> HttpResponse:
    gold.retire_check(check=get_object_or_404(GoldQuery, pk=check_id, query__project=managed_project(request, slug)))
    messages.success(request, _("Saved."))
    return redirect("annotation:checks", slug=slug)


@login_required
@require_POST
def compare(request: HttpRequest, slug: str) -> HttpResponse:
    comparing.start_report(project=managed_project(request, slug), owner=person_of(request))
    return redirect("annotation:quality", slug=slug)


@login_required
@require_POST
def set_pause(request: HttpRequest, slug: str, membership_id: int) -> HttpResponse:
    members = Membership.objects.filter(project=managed_project(request, slug), role=Role.ANNOTATOR)
    membership = get_object_or_404(members, pk=membership_id)
    if request.POST.get("state") == "paused":
        gold.pause_member(membership=membership, reason=PauseReason.MANAGER)
    else:
        gold.resume_member(membership=membership)
    return redirect("annotation:quality", slug=slug)


@login_required
@never_cache
def own_statistics(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_object_or_404(selectors.projects_of(request.user, roles=(Role.ANNOTATOR,)), slug=slug)
    own = presenters.own_statistics(project=project, user=person_of(request))
    context = {"project": project, "own": own, "is_warned": gold.is_warned(project, own.sheet.checks)}
    return render(request, "annotation/review/own_statistics.html", context)


@login_required
def payments(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    return csv_response(presenters.payments_csv(managed_project(request, slug)), name=f"{slug}-payments")


@login_required
def opinions(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    return csv_response(presenters.opinions_csv(managed_project(request, slug)), name=f"{slug}-opinions")


# Views people come for most; any other is an address to keep.
VIEWS = (
    ("", gettext_lazy("All")),
    ("agreement=divided", gettext_lazy("divided")),
    ("state=open&age=old7", gettext_lazy("no answer for seven days")),
    ("flag=any", gettext_lazy("Reported")),
    ("flag=comment", gettext_lazy("unread comment")),
    ("state=set_aside", gettext_lazy("Set aside")),
)
LONGEST_ADDRESS = 2000
# Their value is the name of a class.
ANSWERED = ("answered", "corrected", "agreed")
HAPPENED = {
    "answered": gettext_lazy("answered"),
    "corrected": gettext_lazy("answered anew"),
    "taken_back": gettext_lazy("took the answer back"),
    "skipped": gettext_lazy("skipped"),
    "held": gettext_lazy("has it now"),
    "agreed": gettext_lazy("agreed on"),
    "resolved": gettext_lazy("settled a report"),
    "broken": gettext_lazy("flagged as broken"),
    "sensitive": gettext_lazy("flagged as sensitive"),
    "comment": gettext_lazy("commented"),
    "returned": gettext_lazy("was asked to look again"),
    "reply": gettext_lazy("replied to"),
    "read": gettext_lazy("read it"),
    "looked_again": gettext_lazy("looked again"),
}


@login_required
@never_cache
def questions(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    readable = may_read_questions(project, request.user)
    form = QuestionFilter(request.GET, project=project, readable=readable)
    before = row_id(request.GET.get("before", ""))
    found = browsing.questions(project, form.wanted(), readable=readable, before=before)
    chosen = {name: str(value) for name in form.fields if (value := request.GET.get(name))}
    assigns = services.assigning_refusal(project)
    context = {
        "project": project,
        "form": form,
        "rows": found.rows,
        "readable": readable,
        "views": [(address, words, address == urlencode(chosen)) for address, words in VIEWS],
        "view": urlencode(chosen),
        "older": urlencode({**chosen, "before": str(found.before)}) if found.before else "",
        "is_later": before is not None,
        "may_change": not project.settings.get(Kind.RANDOMIZER.key),
        "may_send_back": reply_refusal(project) is None,
        "may_assign": assigns is None,
        "assigns_nothing": assigns,
        "people": services.assignable_annotators(project).values_list("user", "user__username")
        if assigns is None
        else (),
    }
    return render(request, "annotation/review/questions.html", context)


@login_required
@require_POST
def change_questions(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = ChosenForm(request.POST, project=project)
    if not form.is_valid():
        unread = _("Choose the annotator first.") if "person" in form.errors else _("Tick the questions first.")
        messages.error(request, unread)
        note_nothing(request)
        return _back(request, slug)
    said = form.cleaned_data
    ids = said.pop("question")
    done = change_chosen(project=project, query_ids=ids, actor=person_of(request).get_username(), **said)
    changed = ngettext("%(n)d question was changed.", "%(n)d questions were changed.", len(done))
    messages.success(request, changed % {"n": len(done)})
    if len(done) < len(ids):
        messages.warning(request, _("The others were not open, or could not be changed."))
    return _back(request, slug)


@login_required
@never_cache
def question(request: HttpRequest, slug: str, query_id: int) -> HttpResponse:
    project = managed_project(request, slug)
    query = get_object_or_404(selectors.asked_questions(project).select_related("record", "assigned_to"), pk=query_id)
    shown = browsing.shown_to_manager(project, query) if may_read_questions(project, request.user) else None
    events = [_event_words(event) for event in browsing.history_of(project, query)]
    context = {
        "project": project,
        "query": query,
        "shown": shown,
        "image": shown and shown.image_url and size_ahead(query),
        "events": events,
        "disputed": query.state in (QueryState.DISPUTED, QueryState.IN_REVIEW),
        "waits_for": query.assigned_to if query.state == QueryState.OPEN else None,
        "writes_nobody": reply_refusal(project),
        "reports": reports_of(project, query.pk),
    }
    return render(request, "annotation/review/question.html", context)


@login_required
@never_cache
def asked_image(request: HttpRequest, slug: str, query_id: int) -> HttpResponse:
    return readable_image(request, managed_project(request, slug), query_id)


def _event_words(event: QuestionEvent) -> tuple[QuestionEvent, str]:
    if event.kind == "action":
        return replace(event, value=""), str(SENTENCES.get(event.value, event.value))
    if event.kind in ANSWERED:
        event = replace(event, value=class_name(event.value))
    return event, str(HAPPENED[event.kind])


def _back(request: HttpRequest, slug: str) -> HttpResponse:
    response = redirect("annotation:questions", slug=slug)
    view = request.POST.get("view", "")
    if view:
        response["Location"] += "?" + urlencode(_chosen_in(view))
    return response


def _chosen_in(view: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in parse_qsl(view[:LONGEST_ADDRESS]) if name in QuestionFilter.base_fields]


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
        "class_digits": label_parts.keys_of_type(label_type(project), answer_names(project))[: len(DIGITS)],
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
        "agreed": None if agreed is None else answer_name(project, agreed, question.text),
        "accepted": accepted,
        "words": label_parts.words_of(project, question.text),
        "marks": label_parts.marks_in(project, agreed),
        "choices": label_parts.choices_of(project),
        "form": SettleForm(project=project, may_keep=manages, initial=initial),
        "comment_form": CommentForm(),
    }


def _sent(project: Project, choice: int) -> list[Any]:
    if marks_spans(project):
        return [label_parts.marks_in(project, choice)]
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
        settled = form.cleaned_data | {"choice": number_of_answer(project, query_id, form.cleaned_data["choice"])}
        decisions.settle_reviewed(project=project, person=person, query_id=query_id, **settled)
    else:
        several = names_several(project)
        messages.error(
            request, str(form.errors["choice"][0]) if several else _("Unknown class. Choose one of those below.")
        )
        note_nothing(request)


@login_required
@require_POST
def undo_review(request: HttpRequest, slug: str) -> HttpResponse:
    decisions.undo_review(project=_project(request, slug), person=person_of(request))
    return redirect("annotation:review", slug=slug)
