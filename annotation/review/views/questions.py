"""The questions of a project in a table, what managers do with several at once, and one with its history."""

from dataclasses import replace
from urllib.parse import parse_qsl

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation import selectors
from annotation.access import managed_project
from annotation.budget.action_words import SENTENCES
from annotation.models import QueryState
from annotation.people.identity import note_nothing, person_of
from annotation.questions.images import size_ahead
from annotation.questions.selectors.flags import may_read_questions, reply_refusal, reports_of
from annotation.review.forms import ChosenForm, QuestionFilter
from annotation.review.images import readable_image
from annotation.review.selectors import questions as browsing
from annotation.review.selectors.questions import QuestionEvent
from annotation.review.services import changing
from annotation.review.services.changing import change_chosen
from annotation.wording import class_name
from annotation.work.rest import row_id
from privacy.choices import Kind

# Views people come for most; any other is an address to keep.
VIEWS = (
    ("", gettext_lazy("All")),
    ("agreement=divided", gettext_lazy("Divided")),
    ("state=open&age=old7", gettext_lazy("Waiting for a week")),
    ("flag=any", gettext_lazy("Reported")),
    ("flag=comment", gettext_lazy("Unread comments")),
    ("state=set_aside", gettext_lazy("Set aside")),
)
# Why not all that were ticked changed.
NOT_OPEN = gettext_lazy("The others were not open, or a training may have used their answers.")
OTHERS = {
    "set_aside": NOT_OPEN,
    "send_back": NOT_OPEN,
    "assign": gettext_lazy("The others were not open, or the person has had them or waits for them already."),
    "unassign": gettext_lazy("The others were assigned to nobody."),
}
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
    assigns = changing.assigning_refusal(project)
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
        "people": changing.assignable_annotators(project).values_list("user", "user__username")
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
    messages.success(request, _done_words(said["action"], len(done)))
    if len(done) < len(ids):
        messages.warning(request, OTHERS[said["action"]])
    return _back(request, slug)


def _done_words(action: str, number: int) -> str:
    sentences = {
        "send_back": ngettext("%(n)d question was sent back.", "%(n)d questions were sent back.", number),
        "set_aside": ngettext("%(n)d question was set aside.", "%(n)d questions were set aside.", number),
        "assign": ngettext("%(n)d question was assigned.", "%(n)d questions were assigned.", number),
        "unassign": ngettext("%(n)d question is for everybody.", "%(n)d questions are for everybody.", number),
    }
    return sentences[action] % {"n": number}


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
