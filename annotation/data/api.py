"""REST routes of uploads, registered tables, records of a stream, answers as files, and jobs."""

import json
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from ninja import Field, File, Form, Query, Schema, Status, UploadedFile
from ninja.errors import HttpError

from annotation import selectors
from annotation.budget import charges
from annotation.data.downloads import export_response, labels_response
from annotation.data.services import datasets, exports, registered, streams
from annotation.data.services.label_files import FILE_KINDS, ExportFormat
from annotation.errors import InvalidRecords, InvalidUpload
from annotation.models import BadRows, Dataset, DatasetRole, DatasetState, Job, PoolSource, Role
from annotation.models.exports import Export
from annotation.people.identity import person_of
from annotation.work.ranges import CONDITIONS, file_answers
from annotation.work.reads import Answer, Reads
from annotation.work.rest import (
    IDEMPOTENCY_KEY,
    LONGEST_KEY,
    AsCode,
    JobOut,
    Page,
    RoomRouter,
    SaidOut,
    as_code,
    page_of,
    project_for,
    require_scope,
    responses,
)
from annotation.work.services import jobs
from annotation.work.services.tokens import Scope
from privacy.accounting.cost import Cost
from privacy.wording import in_english

router = RoomRouter()


class BadRowOut(Answer, reads=Reads.MANAGED):
    """Place of a bad row in an upload and its reason, never its content."""

    line: int
    column: str
    reason: str
    reason_as_code: AsCode = Field(None, alias="reason")


class ChargeOut(Answer, reads=Reads.MANAGED):
    """Charge to the account of the pool."""

    epsilon: float
    delta: float


class SourceOut(Answer, reads=Reads.MANAGED):
    """A table that stays where it is, and the snapshot of it that was registered."""

    address: str
    snapshot: str = Field(description="Empty until the ends of its files were read. It is keyed, so it tells no rows.")
    snapshot_number: int | None = Field(None, description="Number of the snapshot, where it is an Iceberg table.")


class DatasetOut(Answer, reads=Reads.MANAGED):
    """An upload and how it went."""

    id: int
    name: str
    role: DatasetRole
    state: DatasetState
    row_count: int | None = Field(alias="counted_rows", description="Null until they are counted.")
    bad_row_count: int | None = Field(description="Null until they are counted, and of a table that stays where it is.")
    bad_rows: list[BadRowOut] = Field(alias="bad_row_report")
    charge: ChargeOut | None = Field(
        None, description="What the next way of this upload through the gate costs; it begins once the rows are read."
    )
    uploader_reason: str = Field("", description="Why it was refused, where that is for who uploaded it alone.")
    uploader_reason_as_code: SaidOut | None = None
    source: SourceOut | None = Field(None, description="Where the rows lie, unless this site keeps them.")
    job: JobOut
    gate_job: JobOut | None = Field(None, description="What sends a crowd's pool through the gate, once it is read.")

    @staticmethod
    def resolve_bad_row_count(dataset: Dataset) -> int | None:
        unseen = dataset.counted_rows is None or DatasetOut.resolve_source(dataset) is not None
        return None if unseen else dataset.bad_row_count

    @staticmethod
    def resolve_source(dataset: Dataset) -> PoolSource | None:
        return getattr(dataset, "source", None)

    @staticmethod
    def resolve_charge(dataset: Dataset) -> Cost | None:
        return charges.upload_charge(dataset.project, dataset.role, dataset)

    @staticmethod
    def resolve_uploader_reason(dataset: Dataset, context: Any) -> str:
        request = context.get("request") if context else None
        brought = request is not None and dataset.uploaded_by_id == person_of(request).pk
        return dataset.uploader_reason if brought else ""

    @staticmethod
    def resolve_uploader_reason_as_code(dataset: Dataset, context: Any) -> dict[str, Any] | None:
        return as_code(DatasetOut.resolve_uploader_reason(dataset, context))


class UploadIn(Schema):
    """Contents of an uploaded file."""

    role: DatasetRole = DatasetRole.POOL
    bad_rows: BadRows = BadRows.KEEP_GOOD
    text_column: str = ""
    contributor_column: str = ""
    label_column: str = ""
    has_header: bool = True
    start_epsilon: float | None = None
    most_epsilon: float | None = Field(
        None, ge=0, description="Refuse the upload if what it has charged at once, `charge` in the answer, is more."
    )
    confirm_few: bool = Field(
        False,
        description="Send a crowd's pool through the gate however few texts pass; the file is not counted then. Left "
        "out, a file of which fewer would pass than the first model needs is refused with 422 before anything is "
        "stored or charged; `expected`, `low`, `high` and `needed` are among the `parameters` of that answer.",
    )
    name: str = Field("", max_length=200)
    mapping: str = Field(
        "",
        max_length=20_000,
        description="A JSON object: everything else a file needs said, such as "
        '`{"features": {"age": "Age (years)"}, "delimiter": ";"}`; it adds to the fields beside it.',
    )

    def whole_mapping(self) -> dict[str, Any]:
        try:
            given = json.loads(self.mapping or "{}")
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise InvalidUpload(in_english("mapping: must be a JSON object"))
        named = {"text": self.text_column, "contributor": self.contributor_column, "label": self.label_column}
        return {"has_header": self.has_header} | given | {key: column for key, column in named.items() if column}


class TableIn(Schema):
    """A table to register where it lies: a Parquet file, a folder of such files, or an Iceberg table."""

    address: str = Field(
        max_length=1000,
        description="`file:///folder/table` or `s3://bucket/table`; of an Iceberg table its folder or a metadata file.",
    )
    name: str = Field("", max_length=200)
    text_column: str = Field("text", max_length=200)
    contributor_column: str | None = Field(None, max_length=200)
    snapshot_id: int | None = Field(
        None, ge=0, lt=2**63, description="Of an Iceberg table: its snapshot of this number instead of the current one."
    )
    most_epsilon: float | None = Field(None, ge=0, description="Refuse the table if the gate's `charge` is more.")


class RecordsIn(Schema):
    """Records of a stream in the order they came: `{"text": ...}` each, or an object of the declared columns."""

    records: list[dict[str, Any]]


class RecordsOut(Answer, reads=Reads.MANAGED):
    """Slots of the stored records; the selection among them is not told."""

    accepted: int
    first_slot: int


@router.write(
    "projects/{slug:slug}/datasets",
    response={202: DatasetOut},
    summary="Upload a file; a job reads it",
    problems=(402, 409, 507),
)
def upload_dataset(request: HttpRequest, slug: str, file: File[UploadedFile], form: Form[UploadIn]) -> Any:
    project = project_for(request, slug, Scope.DATASETS_WRITE, Role.MANAGER)
    refuse_price(charges.upload_charge(project, form.role), form.most_epsilon)
    return datasets.receive_upload(
        project=project,
        file=file,
        name=form.name or file.name or "upload",
        role=form.role,
        bad_rows=form.bad_rows,
        mapping=form.whole_mapping(),
        uploaded_by=person_of(request),
        start_epsilon=form.start_epsilon,
        confirm_few=form.confirm_few,
    )


@router.write(
    "projects/{slug:slug}/tables",
    response={202: DatasetOut},
    summary="Register a table as a pool where it lies; a job reads the ends of its files",
    problems=(402, 409),
)
def register_table(request: HttpRequest, slug: str, body: TableIn) -> Any:
    project = project_for(request, slug, Scope.DATASETS_WRITE, Role.MANAGER)
    refuse_price(charges.upload_charge(project, DatasetRole.POOL), body.most_epsilon)
    return registered.register_table(
        project=project,
        address=body.address,
        name=body.name,
        text=body.text_column,
        contributor=body.contributor_column,
        snapshot=body.snapshot_id,
        registered_by=person_of(request),
    )


@router.pages("projects/{slug:slug}/datasets", response=list[DatasetOut], summary="Uploads of a project")
def list_datasets(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    project = project_for(request, slug, Scope.DATASETS_WRITE, Role.MANAGER)
    found = (
        Dataset.objects.filter(project=project)
        .select_related("job", "gate_job", "source", "project__pool_account")
        .order_by("-id")
    )
    return page_of(found, page, request=request, response=response)


@router.post(
    "projects/{slug:slug}/records",
    response={202: RecordsOut, 200: RecordsOut},
    summary="Post records to a stream; each is examined once",
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/json": {"schema": RecordsIn.model_json_schema()}}},
        **responses(409, 413, parameters=[IDEMPOTENCY_KEY]),
    },
)
def post_records(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.DATASETS_WRITE, Role.MANAGER)
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > LONGEST_KEY:
        raise HttpError(422, f"Idempotency-Key: is longer than {LONGEST_KEY} characters")
    receipt = streams.post_records(project=project, records=_records_in(request), key=key)
    return Status(200 if receipt.repeated else 202, receipt)


def refuse_price(charge: Cost | None, most_epsilon: float | None) -> None:
    if not charges.within_price(charge, most_epsilon):
        assert charge is not None
        raise InvalidUpload(
            in_english("most_epsilon: the upload is charged epsilon {epsilon:g}", epsilon=charge.epsilon)
        )


def _records_in(request: HttpRequest) -> list[Any]:
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
    managed = selectors.projects_of(request.user, roles=(Role.MANAGER,))
    found = Job.objects.filter(project__in=managed, pk=job_id).first()
    is_export = found is not None and found.kind == jobs.EXPORT
    require_scope(request, Scope.LABELS_READ if is_export else Scope.DATASETS_WRITE)
    if found is None:
        raise Http404
    return found


LABEL_FILES: dict[str, Any] = {kind.media_type: {} for kind in FILE_KINDS.values()}


class ExportIn(Schema):
    """Contents of a file to write."""

    what: Literal["labels"] = "labels"
    format: ExportFormat = ExportFormat.JSON_LINES
    history: bool = Field(False, description="Whether answers that were changed are in it, too.")


@router.get(
    "projects/{slug:slug}/labels",
    summary="Every answer as a file, streamed",
    openapi_extra=responses(
        responses={
            200: {
                "description": "The file",
                "headers": {"Content-Disposition": {"required": True, "schema": {"type": "string"}}},
                "content": LABEL_FILES,
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
    return labels_response(project_for(request, slug, Scope.LABELS_READ, Role.MANAGER), format, history=history)


@router.write(
    "projects/{slug:slug}/exports",
    response={202: JobOut},
    summary="Have every answer written to a file; the job says where it is",
    problems=(),
)
def start_export(request: HttpRequest, slug: str, body: ExportIn) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    export = exports.start_export(project=project, owner=person_of(request), format=body.format, history=body.history)
    return export.job


@router.get(
    "projects/{slug:slug}/exports/{job_id}/file",
    summary="The file that a job wrote, whole or in part",
    openapi_extra=responses(416, parameters=CONDITIONS, responses=file_answers(LABEL_FILES)),
)
def get_export(request: HttpRequest, slug: str, job_id: UUID) -> HttpResponseBase:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    found = Export.objects.select_related("project")
    return export_response(request, get_object_or_404(found, project=project, job=job_id))
