"""Pages on which a language model drafts example texts and a person edits and accepts them."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from addons.language_models import drafting
from addons.language_models.models import WordsDraft
from annotation.access import managed_project
from annotation.choices.form_fields import lines_of
from annotation.errors import AnnotationError
from annotation.models import Project
from annotation.models.imports import OpeningDraft
from annotation.people.identity import note_about, note_nothing, person_of
from annotation.projects.services import configuring, drafts
from annotation.projects.views.drafts import keep_typed
from annotation.wording import localized


@require_POST
@login_required
@permission_required("annotation.add_project", raise_exception=True)
def draft_for_opening(request: HttpRequest, draft_id: UUID) -> HttpResponse:
    """Keep what the opening page holds, and let a model draft examples of its classes."""
    note_nothing(request)
    opening = get_object_or_404(OpeningDraft, pk=draft_id, owner=person_of(request))
    for problem in keep_typed(request, opening):
        messages.error(request, problem)
    typed = opening.typed
    return _started(
        request,
        opening=opening,
        classes=[line.strip() for line in str(typed.get("classes", "")).splitlines() if line.strip()],
        question=str(typed.get("question", "")),
        guidelines=str(typed.get("guidelines", "")),
    )


@login_required
def draft_for_project(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    if request.method != "POST":
        return render(request, "language_models/ask.html", {"project": project})
    return _started(
        request,
        project=project,
        classes=[str(name) for name in project.classes],
        question=project.question,
        guidelines=project.guidelines,
    )


def _started(
    request: HttpRequest,
    *,
    classes: list[str],
    question: str,
    guidelines: str,
    project: Project | None = None,
    opening: OpeningDraft | None = None,
) -> HttpResponse:
    sent = request.POST
    examples = sent.get("examples", "")
    try:
        draft = drafting.start_draft(
            owner=person_of(request),
            endpoint=sent.get("endpoint", ""),
            classes=classes,
            question=question,
            # They may quote a record, so a person says that they do not.
            guidelines=guidelines if "with_guidelines" in sent else "",
            examples=int(examples) if examples.isdecimal() and len(examples) <= len("100") else 0,
            project=project,
            opening=opening.pk if opening else None,
        )
    except drafting.DraftRefused as refusal:
        note_nothing(request)
        messages.error(request, localized(str(refusal)))
        if opening is not None:
            return redirect("annotation:opening", opening.pk)
        return render(request, "language_models/ask.html", {"project": project}, status=422)
    return redirect("language_models:words_draft", draft.pk)


@never_cache
@login_required
def words_draft(request: HttpRequest, words_id: UUID) -> HttpResponse:
    """Show a draft to the person who asked for it, until they accept or discard it."""
    draft = get_object_or_404(WordsDraft.objects.select_related("project"), pk=words_id, owner=person_of(request))
    if request.method != "POST":
        return render(request, "language_models/words_draft.html", {"draft": draft, "project": draft.project})
    note_about(request, draft.project_id)
    if "discard" in request.POST or draft.project is None:
        note_nothing(request)
    if "discard" in request.POST:
        draft.delete()
        return _back(draft)
    accepted = lines_of(request.POST.get("lines", ""))
    try:
        _accept(request, draft, accepted)
    except AnnotationError as refusal:
        note_nothing(request)
        messages.error(request, localized(str(refusal)))
        context = {"draft": draft, "project": draft.project, "typed": "\n".join(accepted)}
        return render(request, "language_models/words_draft.html", context, status=422)
    draft.delete()
    messages.success(request, _("Saved."))
    return _back(draft)


def _accept(request: HttpRequest, draft: WordsDraft, accepted: list[str]) -> None:
    """Append accepted lines to the words about the classes and record their source."""
    person = person_of(request)
    source = drafting.source_of(draft, editor=person, accepted=accepted)
    if draft.project is not None:
        project = managed_project(request, draft.project.slug)
        standing = project.settings
        words = [*(standing.get("class_descriptions") or ()), *accepted]
        changes = {
            "class_descriptions": list(dict.fromkeys(words)),
            "words_source": _sources(standing.get("words_source"), source),
        }
        configuring.configure_project(project=project, changes=changes, actor=person)
        return
    opening = get_object_or_404(OpeningDraft, pk=draft.opening, owner=person)
    drafts.add_words(draft=opening, lines=accepted, source=source)


def _sources(before: object, source: str) -> str:
    return f"{before}; {source}" if before and source not in str(before) else source


def _back(draft: WordsDraft) -> HttpResponse:
    if draft.project is not None:
        return redirect("annotation:settings", slug=draft.project.slug)
    return redirect("annotation:opening", draft.opening)
