"""REST routes that open a project from its data, by the same draft as the page."""

import json
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Field, File, Form, Schema, Status, UploadedFile
from ninja.errors import HttpError

from annotation.access import may_open
from annotation.choices.presets import PRESETS
from annotation.data.api import ChargeOut, DatasetOut, refuse_price
from annotation.errors import InvalidUpload
from annotation.models.imports import OpeningDraft
from annotation.people.identity import note_about, note_nothing, person_of
from annotation.projects.forms import drafts as forms
from annotation.projects.forms.configuration import FORMAT, FORMAT_VERSION, read_file
from annotation.projects.services import drafts
from annotation.work.reads import Answer, Reads
from annotation.work.rest import MostIn, ProjectOut, RoomRouter, checked, require_scope
from annotation.work.services.tokens import Scope
from privacy.wording import in_english

router = RoomRouter()
COLUMNS = ("text", "label", "contributor", "id")


class DraftIn(Schema):
    """Project to open from a file; everything else takes the preset's default."""

    preset: str = Field("pool-experts", json_schema_extra={"enum": list(PRESETS)})
    settings: str = Field(
        "{}",
        max_length=200_000,
        description='A JSON object of settings, such as `{"name": "Mail", "pool_epsilon": 2, "classes": ["a", "b"]}`.',
    )
    text_column: str = ""
    label_column: str = ""
    contributor_column: str = ""
    id_column: str = ""

    def typed(self) -> dict[str, Any]:
        try:
            given = json.loads(self.settings)
        except (ValueError, RecursionError):
            given = None
        file = {"format": FORMAT, "format_version": FORMAT_VERSION, "preset": self.preset, "settings": given}
        return {name: forms.as_sent(value) for name, value in read_file(file).draft.items()}


class DraftFileOut(Answer, reads=Reads.OWN):
    """A file of a draft, and the role of each of its columns."""

    part: Literal["pool", "public"]
    name: str
    columns: dict[str, str]


class DraftOut(Answer, reads=Reads.OWN):
    """A project that is not opened yet: settings, files, what opening is charged, and what hinders it."""

    id: UUID
    preset: str
    settings: dict[str, str]
    files: list[DraftFileOut]
    charge: ChargeOut | None
    shared_rows: int = Field(description="Rows of the pool that the public file holds, too.")
    problems: list[str]
    page: str = Field(description="Where it can be changed until it is forgotten, a day after it was made.")
    created_at: datetime


class OpenDraftIn(MostIn):
    """Consent to what opening a draft is charged."""

    confirm_few: bool = Field(False, description="Send a crowd's pool through the gate however few texts pass.")


class OpenedOut(Answer, reads=Reads.OWN):
    """The project, and its files, which jobs read."""

    project: ProjectOut
    datasets: list[DatasetOut]


@router.write(
    "drafts", response={201: DraftOut}, summary="Look at what a project from a file would be", problems=(409, 507)
)
def draft_project(
    request: HttpRequest, file: File[UploadedFile], form: Form[DraftIn], public: File[UploadedFile | None] = None
) -> Any:
    _require(request)
    note_nothing(request)
    typed = form.typed()
    draft = drafts.start_draft(owner=person_of(request), preset=form.preset, typed=typed)
    try:
        for part, sent in ((drafts.POOL, file), (drafts.PUBLIC, public)):
            if sent is not None:
                drafts.bring_file(draft=draft, part=part, file=sent, name=sent.name or part)
        _name_columns(draft, form)
        # What the files show was filled in; what was said goes before it.
        drafts.change_draft(draft=draft, preset=draft.preset, typed=draft.typed | typed)
        return Status(201, _draft_out(request, draft))
    except BaseException:
        drafts.discard_draft(draft=draft)
        raise


@router.write(
    "drafts/{draft_id}/open",
    response={201: OpenedOut},
    summary="Open the project of a draft; jobs read its files",
    problems=(402, 409, 507),
)
def open_draft(request: HttpRequest, draft_id: UUID, body: OpenDraftIn) -> Any:
    draft = _own(request, draft_id)
    form = forms.draft_form(PRESETS[draft.preset], draft.typed)
    checked(form)
    values = form.project_values()
    refuse_price(drafts.rehearse(draft=draft, values=values).charge, body.most_epsilon)
    project = drafts.open_draft(draft=draft, values=values, confirm_few=body.confirm_few)
    note_about(request, project.pk)
    return Status(201, {"project": project, "datasets": list(project.datasets.order_by("pk"))})


@router.remove("drafts/{draft_id}", summary="Discard a draft with its files")
def discard_draft(request: HttpRequest, draft_id: UUID) -> None:
    draft = _own(request, draft_id)
    note_nothing(request)
    drafts.discard_draft(draft=draft)


def _require(request: HttpRequest) -> None:
    require_scope(request, Scope.PROJECTS_WRITE)
    if not may_open(request):
        raise HttpError(403, "Your account may not open projects.")


def _own(request: HttpRequest, draft_id: UUID) -> OpeningDraft:
    _require(request)
    return get_object_or_404(OpeningDraft, pk=draft_id, owner=person_of(request))


def _name_columns(draft: OpeningDraft, form: DraftIn) -> None:
    for role in COLUMNS:
        wanted = getattr(form, f"{role}_column")
        parts = [part for part, held in draft.files.items() if wanted in held["columns"] and _takes(draft, part, role)]
        if wanted and not parts:
            known = ", ".join(dict.fromkeys(name for held in draft.files.values() for name in held["columns"]))
            raise InvalidUpload(
                in_english(
                    "{role}: the file has no column named {name!r}; it has {known}", role=role, name=wanted, known=known
                )
            )
        for part in parts if wanted else ():
            before = {name: "" for name, known in draft.files[part]["roles"].items() if known == role}
            drafts.assign_columns(draft=draft, part=part, roles=before | {wanted: role}, values={})


def _takes(draft: OpeningDraft, part: str, role: str) -> bool:
    kind = str(draft.typed.get("data_kind", ""))
    return role in dict(forms.ROLES.get((part, kind), ()))


def _draft_out(request: HttpRequest, draft: OpeningDraft) -> dict[str, Any]:
    form = forms.draft_form(PRESETS[draft.preset], draft.typed)
    complete = form.is_valid()
    rehearsal = drafts.rehearse(draft=draft, values=form.project_values()) if complete else drafts.Rehearsal()
    wrong = [f"{name}: {error}" for name, errors in form.errors.items() for error in errors]
    return {
        "id": draft.pk,
        "preset": draft.preset,
        "settings": dict(form.data),
        "files": [{"part": part, "name": held["name"], "columns": held["roles"]} for part, held in draft.files.items()],
        "charge": rehearsal.charge,
        "shared_rows": rehearsal.shared,
        "problems": [*wrong, *([rehearsal.problem] if rehearsal.problem else [])],
        "page": request.build_absolute_uri(reverse("annotation:opening", args=[draft.pk])),
        "created_at": draft.created_at,
    }
