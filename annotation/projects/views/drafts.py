"""Pages that open a project from its data."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import get_language_info
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from annotation.budget import charges, words
from annotation.budget.downloads import csv_response
from annotation.budget.forms import MembershipForm
from annotation.budget.spending import table_csv
from annotation.choices.form_fields import lines_in_file
from annotation.choices.presets import PRESETS
from annotation.choices.rules import features_for
from annotation.data.forms import ENCODINGS
from annotation.data.readers.detection import DetectedFile, language_of
from annotation.errors import AnnotationError, DraftGone, InvalidUpload
from annotation.models import DataKind, Project
from annotation.models.imports import OpeningDraft
from annotation.people.identity import note_about, note_nothing, person_of
from annotation.projects import protection_words
from annotation.projects.forms import drafts as pages
from annotation.projects.forms.opening import ChoosingForm
from annotation.projects.services import drafts
from annotation.wording import localized
from privacy.choices import Kind, missing_for

# The sentence network and the table made from it were trained on English texts.
ENCODED_LANGUAGE = "en"


@never_cache
@login_required
@permission_required("annotation.add_project", raise_exception=True)
def new_project(request: HttpRequest) -> HttpResponse:
    """Take the files a project begins with, or the kind of one that begins without."""
    note_nothing(request)
    preset = request.POST.get("preset", "")
    if preset in PRESETS:
        return redirect("annotation:opening", drafts.start_draft(owner=person_of(request), preset=preset).pk)
    form = pages.FilesForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        draft = drafts.start_draft(owner=person_of(request), preset="pool-experts")
        if _bring(form, draft, form.cleaned_data):
            return redirect("annotation:opening", draft.pk)
        drafts.discard_draft(draft=draft)
    context = {"form": form, "presets": PRESETS.values()}
    return render(request, "annotation/projects/new_project.html", context, status=422 if form.errors else 200)


@never_cache
@login_required
@permission_required("annotation.add_project", raise_exception=True)
def opening(request: HttpRequest, draft_id: str) -> HttpResponseBase:
    """Show what a project would be, change it, and open it."""
    draft = get_object_or_404(OpeningDraft, pk=draft_id, owner=person_of(request))
    if request.method != "POST":
        return _shared_rows(draft) if "shared" in request.GET else _page(request, draft)
    if "discard" in request.POST:
        note_nothing(request)
        drafts.discard_draft(draft=draft)
        return redirect("annotation:new_project")
    try:
        return _change(request, draft)
    except DraftGone as error:
        # A second press of the button finds the project among the person's own.
        note_nothing(request)
        messages.info(request, localized(str(error)))
        return redirect("annotation:projects")


def _shared_rows(draft: OpeningDraft) -> HttpResponseBase:
    form = pages.draft_form(PRESETS[draft.preset], draft.typed)
    if not form.is_valid() or set(draft.files) != set(drafts.PARTS):
        raise Http404
    rows = drafts.list_shared(draft=draft, values=form.project_values())
    return csv_response(table_csv(["row", "content"], rows), name="shared-rows")


def _change(request: HttpRequest, draft: OpeningDraft) -> HttpResponse:
    asked = set(pages.draft_form(PRESETS[draft.preset], draft.typed).fields)
    problems = keep_typed(request, draft)
    new = set(pages.draft_form(PRESETS[draft.preset], draft.typed).fields) - asked
    # Without JavaScript a new choice brings settings that nobody has seen yet.
    unseen = "shown" in request.POST and new
    if "open" in request.POST and not unseen and not problems:
        return _open(request, draft)
    note_nothing(request)
    if problems:
        return _page(request, draft, problems=problems)
    if "open" in request.POST:
        messages.info(request, _("Nothing is opened yet."))
    return redirect("annotation:opening", draft.pk)


def _open(request: HttpRequest, draft: OpeningDraft) -> HttpResponse:
    form = pages.draft_form(PRESETS[draft.preset], draft.typed)
    membership = _membership(request, draft, form, bound=True)
    problems = []
    complete = form.is_valid() and membership.is_valid()
    if complete and not _is_agreed(request, draft, form):
        problems.append(_("This is charged; the price is on the button."))
    elif complete:
        values = form.project_values() | membership.cleaned_data
        try:
            project = drafts.open_draft(draft=draft, values=values, confirm_few="confirm_few" in request.POST)
        except DraftGone:
            raise
        except AnnotationError as error:
            problems.append(localized(str(error)))
        else:
            return _to_project(request, project)
    note_nothing(request)
    return _page(request, draft, form=form, membership=membership, problems=problems, wrong=True)


def _is_agreed(request: HttpRequest, draft: OpeningDraft, form: ChoosingForm) -> bool:
    rehearsal = drafts.rehearse(draft=draft, values=form.project_values())
    return charges.is_agreed(request.POST, rehearsal.charge)


def _to_project(request: HttpRequest, project: Project) -> HttpResponse:
    note_about(request, project.pk)
    messages.success(request, _("Project opened."))
    return redirect("annotation:project", slug=project.slug)


def _bring(form: Any, draft: OpeningDraft, files: Mapping[str, Any]) -> bool:
    for part in drafts.PARTS:
        if files.get(part) is not None:
            try:
                drafts.bring_file(draft=draft, part=part, file=files[part], name=files[part].name)
            except InvalidUpload as error:
                form.add_error(part, localized(str(error)))
    return not form.errors


def keep_typed(request: HttpRequest, draft: OpeningDraft) -> list[str]:
    """Keep what was sent, and return what is wrong with a file that came with it."""
    sent = request.POST
    form = pages.draft_form(PRESETS[draft.preset], draft.typed)
    typed = draft.typed | pages.typed_in(form, sent)
    typed |= {name: sent[name] for name in (*MembershipForm.base_fields, "level") if name in sent}
    level = next((level for level in words.LEVELS if level.key == sent.get("level")), None)
    if level is not None and sent.get("pool_epsilon", form.data["pool_epsilon"]) == form.data["pool_epsilon"]:
        typed["pool_epsilon"] = f"{level.epsilon:g}"
    offered = {preset.key for preset in _offered(draft)}
    preset = sent["preset"] if sent.get("preset") in offered else draft.preset
    if preset != draft.preset:
        # Prices and choices of one preset are wrong for another.
        typed = {name: value for name, value in typed.items() if name in pages.KEPT}
    else:
        form = pages.draft_form(PRESETS[preset], typed)
        typed |= {name: sent[name] for name in form.fields if name in sent and name not in typed}
    drafts.change_draft(draft=draft, preset=preset, typed=typed)
    try:
        if (given := request.FILES.get("words_file")) is not None:
            drafts.add_words(draft=draft, lines=lines_in_file(given))
        if "take_examples" in sent and drafts.can_take_examples(draft):
            drafts.take_examples(draft=draft)
    except InvalidUpload as error:
        return [localized(str(error))]
    brought = pages.FilesForm(sent, request.FILES)
    brought.is_valid()
    brought.errors.pop(drafts.POOL, None)
    if not _bring(brought, draft, request.FILES):
        return [str(error) for errors in brought.errors.values() for error in errors]
    try:
        for part in draft.files:
            if part not in request.FILES:
                _keep_columns(request, draft, part)
    except InvalidUpload as error:
        return [localized(str(error))]
    return []


def _keep_columns(request: HttpRequest, draft: OpeningDraft, part: str) -> None:
    sent, held = request.POST, draft.files[part]
    if f"{part}-drop" in sent:
        drafts.drop_file(draft=draft, part=part)
        return
    if part == drafts.POOL and "leave_out" in sent:
        drafts.leave_shared_out(draft=draft, leave_out=sent["leave_out"] == "yes")
    form = pages.ReadingForm(sent, detected=drafts.look_at(draft, part), prefix=part)
    if form.is_valid() and f"{part}-written" in sent:
        reading = {
            **held["reading"],
            **{name: value for name, value in form.cleaned_data.items() if value not in ("", None)},
        }
        if reading != held["reading"]:
            drafts.read_anew(draft=draft, part=part, reading=reading)
            return
    columns, counts = enumerate(held["columns"]), enumerate(held.get("counts", []))
    roles = {name: sent[f"{part}-role-{n}"] for n, name in columns if f"{part}-role-{n}" in sent}
    values = {value: sent[f"value-{n}"] for n, (value, _count) in counts if f"value-{n}" in sent}
    drafts.assign_columns(draft=draft, part=part, roles=roles, values=values)


def _offered(draft: OpeningDraft) -> list[Any]:
    kind = draft.typed.get("data_kind") if draft.files else None
    return pages.offered_presets(kind, from_file=drafts.POOL in draft.files)


def _membership(request: HttpRequest, draft: OpeningDraft, form: ChoosingForm, *, bound: bool) -> MembershipForm:
    data = draft.typed if bound else None
    return MembershipForm(data, person=request.user, terms=pages.sharing_terms(form), chosen=draft.typed)


def _page(
    request: HttpRequest,
    draft: OpeningDraft,
    *,
    form: ChoosingForm | None = None,
    membership: MembershipForm | None = None,
    problems: list[str] | None = None,
    wrong: bool = False,
) -> HttpResponse:
    preset = PRESETS[draft.preset]
    if form is None:
        form = pages.draft_form(preset, draft.typed)
        complete = form.is_valid()
        pages.forgive_blanks(form)
    else:
        complete = form.is_valid()
    rehearsal = drafts.rehearse(draft=draft, values=form.project_values()) if complete and draft.files else None
    unit = str(form.data.get("privacy_unit") or "")
    level = pages.LevelForm(initial={"level": pages.level_of(form.data.get("pool_epsilon"))})
    epsilon = form.cleaned_data.get("pool_epsilon")
    own = (pages.OWN_LIMIT, epsilon) if epsilon and level.initial["level"] == pages.OWN_LIMIT else None
    words.say_consequences(level, delta=form.cleaned_data.get("pool_delta") or 0.0, own=own)
    named = {*pages.DATA, *pages.TASK, *pages.EXACT}
    of_texts = form.data.get("data_kind", DataKind.TEXT) == DataKind.TEXT
    context: dict[str, Any] = {
        "draft": draft,
        "preset": preset,
        "parts": [_part(draft, part, form) for part in drafts.PARTS if part in draft.files],
        "files": pages.FilesForm(),
        "annotators": pages.AnnotatorsForm(initial={"preset": preset.key}, offered=_offered(draft)),
        "form": form,
        "data_fields": form.group(pages.DATA),
        "task_fields": [field for field in form.group(pages.TASK) if of_texts or field.name != "class_descriptions"],
        "of_texts": of_texts,
        "exact_fields": form.group(pages.EXACT),
        "advanced_fields": [form[name] for name in form.fields if name not in named],
        "level": level,
        "membership": membership or _membership(request, draft, form, bound=False),
        "rehearsal": rehearsal,
        "who": protection_words.who_is_protected(preset, unit, form.values() if complete else None),
        "agreed": charges.token_of(rehearsal.charge) if rehearsal and rehearsal.charge else "",
        "problems": [*(problems or []), *([localized(rehearsal.problem)] if rehearsal and rehearsal.problem else [])],
        "complete": complete,
        **_other_language(draft),
        "can_take_examples": drafts.can_take_examples(draft),
    }
    status = 422 if wrong or problems else 200
    return render(request, "annotation/projects/opening.html", context, status=status)


def _other_language(draft: OpeningDraft) -> dict[str, Any]:
    """Name the language of the texts or the words if it is not English, and say whether the chosen encoder knows it."""
    if draft.typed.get("data_kind", DataKind.TEXT) != DataKind.TEXT:
        return {}
    lines = str(draft.typed.get("class_descriptions", "")).splitlines()
    said = language_of([line.partition(":")[2] for line in lines])
    found = [*(drafts.look_at(draft, part).language for part in draft.files), said]
    other = next((code for code in found if code not in ("", ENCODED_LANGUAGE)), "")
    if not other:
        return {}
    state, known = "", features_for(other)
    if known:
        chosen = draft.typed.get(Kind.FEATURES.key) == known.name
        state = "missing" if missing_for(known) else "chosen" if chosen else "offered"
    return {"other_language": _(get_language_info(other)["name"]), "reads_language": state}


def _part(draft: OpeningDraft, part: str, form: ChoosingForm) -> dict[str, Any]:
    """Return what the page shows of one file."""
    held, detected = draft.files[part], drafts.look_at(draft, part)
    kind = str(form.data.get("data_kind") or detected.kind)
    choices = pages.ROLES.get((part, kind), ())
    places = {name: place for place, name in enumerate(held["columns"])}
    reading = pages.ReadingForm(initial={"encoding": "", **held["reading"]}, detected=detected, prefix=part)
    counts = held.get("counts", [])
    return {
        "part": part,
        "name": held["name"],
        "is_public": part == drafts.PUBLIC,
        "leaves_out": bool(held.get("without_public")),
        "facts": _facts(detected, reading),
        "columns": [(places[name], name, held["roles"].get(name, ""), choices) for name in detected.columns],
        "rows": detected.rows,
        "thumbnails": [b64encode(content).decode() for content in detected.thumbnails],
        "reading": reading,
        "values": [
            (place, value, held["values"].get(value, value), count) for place, (value, count) in enumerate(counts)
        ]
        if len(counts) <= pages.MOST_RENAMED
        else [],
    }


def _facts(detected: DetectedFile, reading: Any) -> list[str]:
    """Return how a file is written, in words."""
    said = [str(detected.shape.format).removeprefix(".").upper()]
    if detected.images:
        said.append(_("%(n)d images") % {"n": detected.images})
    if detected.language:
        said.append(_(get_language_info(detected.language)["name"]))
    if encoding := detected.reading.get("encoding"):
        said.append(str(dict(ENCODINGS).get(encoding, encoding)).partition(" (")[0])
    if delimiter := detected.reading.get("delimiter"):
        said.append(str(dict(reading.fields["delimiter"].choices).get(delimiter, delimiter)))
    return said
