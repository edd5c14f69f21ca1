"""REST routes of annotation: projects, uploads, jobs, questions, the ledger."""

import json
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from ninja import Field, File, Form, Query, Router, Schema, Status, UploadedFile
from ninja.errors import HttpError
from ninja.security import HttpBearer

from annotation import selectors, sheets
from annotation.answers import IDEMPOTENCY_KEY, LONGEST_KEY, answers, paged, written
from annotation.downloads import labels_response, statement_response
from annotation.errors import InvalidRecords, InvalidUpload
from annotation.idempotent_api import idempotent
from annotation.identity import person_of
from annotation.models import Assignment, BadRows, Dataset, DatasetRole, Job, Project, Role
from annotation.pagination import Page, page_of
from annotation.services import datasets, labels, lifecycle, queue, streams, tokens
from annotation.services.label_export import MEDIA_TYPES, ExportFormat
from annotation.services.tokens import Scope
from privacy import selectors as privacy_selectors

router = Router()
AfterSequence = Annotated[int, Field(ge=0, le=2**62, description="Only entries with a larger number.")]
LABEL_MEDIA_TYPES = list(MEDIA_TYPES.values())


class BearerToken(HttpBearer):
    """Authenticate by a token made on the tokens page; its person becomes `request.user`."""

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        found = tokens.use_token(secret=token, limit=settings.API_REQUESTS_PER_MINUTE)
        if found is not None:
            request.user = found.user
        return found


def require_scope(request: HttpRequest, scope: Scope) -> None:
    """Refuse a token that was not made for this."""
    if scope not in request.auth.scopes:  # type: ignore[attr-defined]
        raise PermissionDenied(f"This token lacks the scope {scope}.")


class ProjectOut(Schema):
    """A project as its members see it."""

    slug: str
    name: str
    oracle: str
    data_kind: str
    classes: list[str]
    state: str
    overlap: int


class JobOut(Schema):
    """How far long work is."""

    id: UUID
    kind: str
    state: str
    progress_done: int
    progress_total: int | None
    message: str
    error: str
    created_at: datetime
    finished_at: datetime | None


class BadRowOut(Schema):
    """Where an upload had a bad row, and why; never what stood there."""

    line: int
    column: str
    reason: str


class DatasetOut(Schema):
    """An upload and how it went."""

    id: int
    name: str
    role: str
    state: str
    row_count: int
    bad_row_count: int
    bad_rows: list[BadRowOut] = Field(alias="bad_row_report")
    job: JobOut


class UploadIn(Schema):
    """What an uploaded file holds."""

    role: DatasetRole = DatasetRole.POOL
    bad_rows: BadRows = BadRows.KEEP_GOOD
    text_column: str = ""
    contributor_column: str = ""
    label_column: str = ""
    has_header: bool = True
    start_epsilon: float | None = None
    name: str = Field("", max_length=200)
    mapping: str = Field(
        "",
        max_length=20_000,
        description="A JSON object: everything else a file needs said, such as "
        '`{"features": {"age": "Age (years)"}, "delimiter": ";"}`; it adds to the fields beside it.',
    )

    def whole_mapping(self) -> dict[str, Any]:
        """Return the mapping with the columns that have a field of their own."""
        try:
            given = json.loads(self.mapping or "{}")
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise InvalidUpload("mapping: must be a JSON object")
        named = {"text": self.text_column, "contributor": self.contributor_column, "label": self.label_column}
        return {"has_header": self.has_header} | given | {key: column for key, column in named.items() if column}


class RecordsIn(Schema):
    """Records of a stream in the order they came: `{"text": ...}` each, or an object of the declared columns."""

    records: list[dict[str, Any]]


class RecordsOut(Schema):
    """What was stored: each record has a slot of its own; whether one is asked about is not said."""

    accepted: int
    first_slot: int


class AssignmentOut(Schema):
    """A question leased to the caller.

    Where `guess` names a class, the question is whether it is right, and `classes` are the two answers to that.
    """

    id: UUID
    leased_until: datetime
    question: str
    classes: list[str]
    guess: str | None
    text: str | None
    fields: dict[str, Any] | None
    image_url: str | None


class LabelIn(Schema):
    """An answer: the position of the class in the project's list."""

    choice: int = Field(ge=0)


class SkipIn(Schema):
    """Why a question is not answered."""

    reason: str = Field("", max_length=200)


class LabelOut(Schema):
    """A stored answer, under the id of its assignment.

    Numbers of rows are given out over all projects: whoever answers in one could count by their gaps, second by second,
    what is answered in another that hides it.
    """

    id: UUID = Field(alias="assignment_id")
    choice: int
    created_at: datetime


class EntryOut(Schema):
    """One entry of the ledger; `account` is the scope of its account."""

    account: str = Field(alias="account.scope")
    sequence: int
    kind: str
    mechanism: str
    purpose: str
    subject: str
    actor: str
    reason: str
    epsilon_nano: int | None
    delta_atto: int
    rho_nano: int | None
    parent: int | None
    created_at: datetime
    hash: str
    output_digest: str

    @staticmethod
    def resolve_parent(entry: Any) -> int | None:
        """Name the entry this one settles or descends from by its place in the account."""
        return entry.parent.sequence if entry.parent else None


class AccountOut(Schema):
    """An account: the guarantee is its limit. `entries` counts them; `ledger/entries` has them."""

    scope: str
    unit: str
    adjacency: str
    filter: str
    epsilon_limit: float
    epsilon_spent: float
    delta_limit: float
    delta_spent: float
    entries: int
    chain_head: str


def _project(request: HttpRequest, slug: str, *roles: Role) -> Project:
    project = get_object_or_404(selectors.projects_of(request.user, roles=roles), slug=slug)
    if request.method != "GET":
        lifecycle.refuse_if_closed(project)
    return project


@router.get("projects", response=list[ProjectOut], summary="The caller's projects", openapi_extra=paged())
def list_projects(request: HttpRequest, response: HttpResponse, page: Query[Page], closed: bool = False) -> Any:
    require_scope(request, Scope.PROJECTS_READ)
    found = selectors.projects_of(request.user).order_by("slug")
    if not closed:
        found = found.exclude(state__in=lifecycle.CLOSED)
    return page_of(found, page, request=request, response=response)


@router.get("projects/{slug:slug}", response=ProjectOut, summary="One project")
def get_project(request: HttpRequest, slug: str) -> Any:
    require_scope(request, Scope.PROJECTS_READ)
    return _project(request, slug)


@router.post(
    "projects/{slug:slug}/datasets",
    response={202: DatasetOut},
    summary="Upload a file; a job reads it",
    openapi_extra=written(202, problems=(402, 409, 507)),
)
@idempotent
def upload_dataset(request: HttpRequest, slug: str, file: File[UploadedFile], form: Form[UploadIn]) -> Any:
    require_scope(request, Scope.DATASETS_WRITE)
    project = _project(request, slug, Role.MANAGER)
    dataset = datasets.receive_upload(
        project=project,
        file=file,
        name=form.name or file.name or "upload",
        role=form.role,
        bad_rows=form.bad_rows,
        mapping=form.whole_mapping(),
        uploaded_by=person_of(request),
        start_epsilon=form.start_epsilon,
    )
    return Status(202, dataset)


@router.get(
    "projects/{slug:slug}/datasets", response=list[DatasetOut], summary="Uploads of a project", openapi_extra=paged()
)
def list_datasets(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    require_scope(request, Scope.DATASETS_WRITE)
    project = _project(request, slug, Role.MANAGER)
    found = Dataset.objects.filter(project=project).select_related("job").order_by("-id")
    return page_of(found, page, request=request, response=response)


@router.post(
    "projects/{slug:slug}/records",
    response={202: RecordsOut, 200: RecordsOut},
    summary="Post records to a stream; each is examined once",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": RecordsIn.model_json_schema()}},
        },
        **answers(409, 413, parameters=[IDEMPOTENCY_KEY]),
    },
)
def post_records(request: HttpRequest, slug: str) -> Any:
    require_scope(request, Scope.DATASETS_WRITE)
    project = _project(request, slug, Role.MANAGER)
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > LONGEST_KEY:
        raise HttpError(422, f"Idempotency-Key: is longer than {LONGEST_KEY} characters")
    receipt = streams.post_records(project=project, records=_records_in(request), key=key)
    return Status(200 if receipt.repeated else 202, receipt)


def _records_in(request: HttpRequest) -> list[Any]:
    """Read the body without a model of each record, which would cost more than examining them."""
    if int(request.headers.get("Content-Length") or 0) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise HttpError(413, f"A request may hold {settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,} bytes at most.")
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError):
        raise InvalidRecords([], "The body is not valid JSON.") from None
    if not (isinstance(body, dict) and isinstance(body.get("records"), list)):
        raise InvalidRecords([], "The body must be an object with a list called records.")
    records: list[Any] = body["records"]
    return records


@router.get("jobs/{job_id}", response=JobOut, summary="Progress of a job")
def get_job(request: HttpRequest, job_id: UUID) -> Any:
    require_scope(request, Scope.DATASETS_WRITE)
    managed = selectors.projects_of(request.user, roles=(Role.MANAGER,))
    return get_object_or_404(Job.objects.filter(project__in=managed), pk=job_id)


@router.post(
    "projects/{slug:slug}/assignments",
    response={200: AssignmentOut, 204: None},
    summary="Claim the next question; 204 when there is none",
    openapi_extra=written(200, 204, problems=(409,)),
)
@idempotent
def claim_assignment(request: HttpRequest, slug: str) -> Any:
    require_scope(request, Scope.LABELS_WRITE)
    project = _project(request, slug, Role.ANNOTATOR)
    assignment = queue.claim_next(project=project, user=person_of(request))
    if assignment is None:
        return Status(204, None)
    shown = selectors.question_of(assignment)
    return AssignmentOut(
        id=assignment.id,
        leased_until=assignment.leased_until,
        question=project.question,
        classes=selectors.answers_of(project),
        guess=selectors.guess_of(assignment),
        text=shown.text,
        fields=dict(shown.fields) if shown.fields is not None else None,
        image_url=shown.image_url,
    )


def _own_assignment(request: HttpRequest, assignment_id: UUID) -> Assignment:
    return get_object_or_404(selectors.assignments_of(request.user), pk=assignment_id)


@router.post(
    "assignments/{assignment_id}/label",
    response=LabelOut,
    summary="Answer a question",
    openapi_extra=written(200, problems=(409,)),
)
@idempotent
def label_assignment(request: HttpRequest, assignment_id: UUID, body: LabelIn) -> Any:
    require_scope(request, Scope.LABELS_WRITE)
    return labels.submit_label(assignment=_own_assignment(request, assignment_id), choice=body.choice)


@router.post(
    "assignments/{assignment_id}/skip",
    response={204: None},
    summary="Give a question back",
    openapi_extra=written(204, problems=(409,)),
)
@idempotent
def skip_assignment(request: HttpRequest, assignment_id: UUID, body: SkipIn) -> Any:
    require_scope(request, Scope.LABELS_WRITE)
    labels.skip_assignment(assignment=_own_assignment(request, assignment_id), reason=body.reason)
    return Status(204, None)


@router.get(
    "projects/{slug:slug}/labels",
    summary="Every answer as a file, streamed",
    openapi_extra=answers(
        responses={
            200: {
                "description": "The file",
                "headers": {"Content-Disposition": {"required": True, "schema": {"type": "string"}}},
                "content": {name: {} for name in LABEL_MEDIA_TYPES},
            }
        }
    ),
)
def export_labels(
    request: HttpRequest,
    slug: str,
    format: ExportFormat = ExportFormat.JSON_LINES,  # noqa: A002
    history: bool = False,
) -> HttpResponseBase:
    require_scope(request, Scope.LABELS_READ)
    return labels_response(_project(request, slug, Role.MANAGER), format, history=history)


@router.get(
    "projects/{slug:slug}/ledger",
    response=list[AccountOut],
    summary="Accounts with limits and spending",
    openapi_extra=paged(),
)
def list_accounts(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    require_scope(request, Scope.LEDGER_READ)
    project = _project(request, slug, Role.MANAGER, Role.ENGINEER)
    found = page_of(sheets.accounts_of(project), page, request=request, response=response)
    return [_account(account) for account in found]


@router.get(
    "projects/{slug:slug}/ledger/entries",
    response=list[EntryOut],
    summary="Every entry, oldest first",
    openapi_extra=paged(),
)
def list_entries(
    request: HttpRequest,
    response: HttpResponse,
    slug: str,
    page: Query[Page],
    account: str = "",
    after: AfterSequence = 0,
) -> Any:
    require_scope(request, Scope.LEDGER_READ)
    accounts = sheets.accounts_of(_project(request, slug, Role.MANAGER, Role.ENGINEER))
    found = privacy_selectors.entries_of(accounts.filter(scope=account) if account else accounts, after=after)
    return page_of(found, page, request=request, response=response)


@router.get(
    "projects/{slug:slug}/ledger/statement",
    summary="Every entry with the audit's verdict, for an auditor",
    openapi_extra=answers(
        responses={
            200: {
                "description": "The document; docs/statement.md has its schema",
                "headers": {"Content-Disposition": {"required": True, "schema": {"type": "string"}}},
                "content": {"application/json": {}},
            }
        }
    ),
)
def get_statement(request: HttpRequest, slug: str) -> HttpResponseBase:
    require_scope(request, Scope.LEDGER_READ)
    return statement_response(_project(request, slug, Role.MANAGER, Role.ENGINEER))


def _account(account: Any) -> dict[str, Any]:
    guarantee = privacy_selectors.guarantee(account)
    return {
        "scope": account.scope,
        "unit": account.unit,
        "adjacency": account.adjacency,
        "filter": account.filter,
        "epsilon_limit": guarantee.epsilon_limit,
        "epsilon_spent": guarantee.epsilon_spent,
        "delta_limit": guarantee.delta_limit,
        "delta_spent": guarantee.delta_spent,
        "entries": guarantee.sequence,
        "chain_head": guarantee.chain_head,
    }
