"""Conventions of the REST interface: tokens, scopes, replies, pages of rows and repeated requests."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from typing import Annotated, Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_list_or_404, get_object_or_404
from django.urls import reverse
from django.utils.translation import override
from ninja import Field, Router, Schema
from ninja.decorators import decorate_view
from ninja.errors import HttpError
from ninja.security import HttpBearer
from pydantic import AfterValidator, BeforeValidator

from annotation import access, selectors
from annotation.choices.classes import merged_names
from annotation.errors import AnnotationError, InvalidConfiguration
from annotation.models import Assignment, DataKind, Job, Membership, Oracle, Project, ProjectState, Role, WorkState
from annotation.work.reads import Answer, Reads
from annotation.work.services import jobs, tokens
from annotation.work.services.idempotency import StoredReply, answer_once
from annotation.work.services.tokens import Scope
from privacy.moments import whole_second
from privacy.wording import Message, as_message, in_english, joined_messages, message_of

# A time of a step that read rows or answers, as those outside may know it.
Moment = Annotated[datetime, AfterValidator(whole_second)]


class SaidOut(Answer, reads=Reads.SITE):
    """Parts of the sentence beside it, so that a program can tell it in its own words or language.

    One sentence has a `code`, which stays the same whatever the values, and `parameters`: numbers, names, moments
    (`{"moment": ...}`) and further codes with theirs. Where it counts something, `code` is the form for one and
    `plural` the form for other numbers, which `n` of the parameters is. Several sentences are `messages`, put together
    with `separator`.
    """

    code: str | None = None
    plural: str | None = None
    parameters: dict[str, Any] | None = None
    separator: str | None = None
    messages: list[dict[str, Any]] | None = None


def as_code(said: str | None) -> dict[str, Any] | None:
    """Return what a sentence was made from; None where nothing is said."""
    return message_of(said).as_json() if said else None


# A field beside a sentence, whose alias is the sentence's name.
AsCode = Annotated[SaidOut | None, BeforeValidator(as_code)]
LONGEST_KEY = 200
IDEMPOTENCY_KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "schema": {"type": "string", "maxLength": LONGEST_KEY},
    "description": "Sent again with the same key within a day, the write happens once.",
}
LINK = {"Link": {"schema": {"type": "string"}, "description": "Where the next page is, while there is one."}}
REPLAYED = {
    "Idempotency-Replayed": {
        "schema": {"type": "string", "const": "true"},
        "description": "There where this answer was given before and nothing was written now.",
    }
}
Headers = Mapping[str, Mapping[str, Any]]


def problem_reference(status: int) -> dict[str, str]:
    return {"$ref": f"#/components/responses/Problem{status}"}


def responses(
    *problems: int,
    headers: Mapping[int, Headers] | None = None,
    parameters: Sequence[Mapping[str, Any]] = (),
    responses: Mapping[int, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return what a route adds to its description: refusals of its own, headers of its answers, parameters."""
    documented: dict[int, Any] = {status: problem_reference(status) for status in problems}
    documented |= {status: {"headers": dict(found)} for status, found in (headers or {}).items()}
    documented |= dict(responses or {})
    return {"responses": documented} | ({"parameters": list(parameters)} if parameters else {})


LARGEST_PAGE = 1000


class Page(Schema):
    """Part of a list."""

    limit: int = Field(100, ge=1, le=LARGEST_PAGE, description="Rows at most.")
    offset: int = Field(0, ge=0, le=2**31, description="Rows to leave out first.")


def page_of(
    found: QuerySet[Any] | Sequence[Any], page: Page, *, request: HttpRequest, response: HttpResponse
) -> list[Any]:
    """Return one page of what is there in order; the header Link names the next page while there is one (RFC 8288)."""
    # One more than asked says whether there is a next page without counting all rows.
    rows = list(found[page.offset : page.offset + page.limit + 1])
    if len(rows) > page.limit:
        query = request.GET.copy()
        query["limit"], query["offset"] = str(page.limit), str(page.offset + page.limit)
        address = request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
        response.headers["Link"] = f'<{address}>; rel="next"'
    return rows[: page.limit]


def row_id(text: str) -> int | None:
    """Return the number of a row from an address; None for what can be none."""
    return int(text) if text.isdecimal() and len(text) < 19 else None


def checked(form: BaseForm) -> dict[str, Any]:
    """Return what a form makes of a request; `InvalidConfiguration` names each field and the rule it breaks."""
    with override("en"):
        if form.is_valid():
            return form.cleaned_data
        wrong = [
            str(error) if name == "__all__" else as_message("{field}: {reason}", field=name, reason=str(error))
            for name, errors in form.errors.items()
            for error in errors
        ]
    raise InvalidConfiguration(joined_messages("; ", wrong))


def _once(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return _answer(view, request, *args, **kwargs)
        except (HttpError, AnnotationError) as error:
            # Raised around the route, where its own handling of errors does not reach.
            operation: Any = view
            problem: HttpResponse = operation.__self__.api.on_exception(request, error)
            return problem

    return answer


def _answer(view: Callable[..., HttpResponse], request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
    key = request.headers.get("Idempotency-Key", "")
    token = tokens.find_token(secret=request.headers.get("Authorization", "").removeprefix("Bearer ").strip())
    # Who may not come in is told so by the route itself.
    if not key or token is None:
        return view(request, *args, **kwargs)
    if len(key) > LONGEST_KEY:
        raise HttpError(422, f"Idempotency-Key: is longer than {LONGEST_KEY} characters")
    refused: list[HttpResponse] = []

    def perform() -> StoredReply:
        response = view(request, *args, **kwargs)
        if response.status_code >= 400:
            refused.append(response)
        return StoredReply(response.status_code, response.content.decode())

    given = answer_once(user=token.user, key=key, request_digest=_digest(request, token.pk), perform=perform)
    if refused:
        return refused[0]
    response = HttpResponse(given.body, status=given.status, content_type="application/json; charset=utf-8")
    if given.repeated:
        response.headers["Idempotency-Replayed"] = "true"
    return response


once = decorate_view(_once)


def _digest(request: HttpRequest, token_id: int) -> bytes:
    # Keyed: a body may hold a record or a name, and nobody shall try them out.
    digest = hashlib.blake2b(digest_size=32, key=settings.PSEUDONYM_KEY.encode()[:64], person=b"request")
    digest.update(f"{token_id}\0{request.method}\0{request.get_full_path()}\0".encode())
    if not (request.content_type or "").startswith("multipart/"):
        digest.update(request.body)
        return digest.digest()
    for name, values in sorted(request.POST.lists()):
        digest.update(repr((name, values)).encode())
    for name, files in sorted(request.FILES.lists()):
        for file in files:
            assert isinstance(file, UploadedFile)
            digest.update(repr((name, file.name, file.size)).encode())
            for chunk in file.chunks():
                digest.update(chunk)
            file.seek(0)
    return digest.digest()


Declaration = Callable[[Callable[..., Any]], Callable[..., Any]]
NOTHING = {204: None}


class RoomRouter(Router):
    def write(
        self,
        path: str,
        *,
        response: Any = NOTHING,
        problems: Sequence[int] = (409,),
        method: str = "POST",
        **described: Any,
    ) -> Declaration:
        """Declare a route that writes, once under an Idempotency-Key, and may refuse what it is asked."""
        headers = dict.fromkeys(response if isinstance(response, dict) else [200], REPLAYED)
        extra = responses(*problems, headers=headers, parameters=[IDEMPOTENCY_KEY])
        declared = self.api_operation([method], path, response=response, openapi_extra=extra, **described)
        return lambda view: declared(once(view))

    def pages(self, path: str, *, problems: Sequence[int] = (), **described: Any) -> Declaration:
        return self.get(path, openapi_extra=responses(*problems, headers={200: LINK}), **described)

    def remove(self, path: str, *, problems: Sequence[int] = (409,), **described: Any) -> Declaration:
        """Declare a route that takes something away and answers with nothing."""
        return self.delete(path, response=NOTHING, openapi_extra=responses(*problems), **described)


router = RoomRouter()


class BearerToken(HttpBearer):
    """Authenticate by a token made on the tokens page; its person becomes `request.user`."""

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        found = tokens.use_token(secret=token, limit=settings.API_REQUESTS_PER_MINUTE)
        if found is not None:
            request.user = found.user
            # Only where the request changes something that the history tells with a name.
            if (act_as := getattr(request, "act_as", None)) is not None:
                act_as(found.user.get_username())
        return found


def require_scope(request: HttpRequest, scope: Scope) -> None:
    if scope not in request.auth.scopes:  # type: ignore[attr-defined]
        raise PermissionDenied(lacking_words(request, scope))


def lacking_words(request: HttpRequest, scope: Scope) -> Message:
    address = request.build_absolute_uri(reverse("annotation:tokens"))
    return in_english(
        "This token lacks the scope {scope}. Make one that has it at {address}.", scope=scope.value, address=address
    )


class ProjectOut(Answer, reads=Reads.PROJECT):
    """A project as its members see it."""

    slug: str
    name: str
    oracle: Oracle
    data_kind: DataKind
    classes: list[str]
    merged: dict[str, str] = Field({}, description="Classes that count as another one since, each with that one.")
    renamed: dict[str, str] = Field({}, description="Earlier names of classes, each with the one it has now.")
    state: ProjectState
    overlap: int

    @staticmethod
    def resolve_renamed(project: Project) -> dict[str, str]:
        return dict(project.renamed_classes)

    @staticmethod
    def resolve_merged(project: Project) -> dict[str, str]:
        return merged_names(project.merged_classes)


class MostIn(Schema):
    """Highest charge that a program agrees to."""

    most_epsilon: float | None = Field(None, ge=0, description="Refuse if what is charged is more.")


def own_assignment(request: HttpRequest, assignment_id: UUID, scope: Scope) -> Assignment:
    require_scope(request, scope)
    return get_object_or_404(selectors.assignments_of(request.user), pk=assignment_id)


def member_project(request: HttpRequest, slug: str, *roles: Role) -> Project:
    """Return a project in which the person has one of the roles; members in another role are told which they need."""
    project = selectors.projects_of(request.user, roles=roles).filter(slug=slug).first()
    if project is None:
        get_list_or_404(Membership, project__slug=slug, user=request.user)
        raise PermissionDenied(
            in_english("This needs one of these roles in the project: {roles}.", roles=", ".join(roles))
        )
    return project


def project_for(request: HttpRequest, slug: str, scope: Scope, *roles: Role) -> Project:
    """Return the project if the token has the scope and its person one of the roles; a closed one can only be read."""
    require_scope(request, scope)
    project = member_project(request, slug, *roles)
    if request.method != "GET":
        access.refuse_if_closed(project)
    return project


class ExportOut(Answer, reads=Reads.MANAGED):
    """A file of labels that a job writes; `file` is its path below `/api/v1/`, null before, after `expires_at`, and
    once something in the project was forgotten.
    """

    format: str
    history: bool
    file: str | None
    size: int | None
    sha256: str | None
    expires_at: datetime | None


class JobOut(Answer, reads=Reads.MANAGED):
    """State of long work."""

    id: UUID
    kind: str
    state: WorkState
    progress_done: int
    progress_total: int | None
    message: str
    message_as_code: AsCode = Field(None, alias="message")
    error: str
    error_as_code: AsCode = Field(None, alias="error")
    created_at: datetime
    finished_at: datetime | None
    export: ExportOut | None = Field(None, description="What a job of the kind `export` writes.")

    @staticmethod
    def resolve_export(job: Job) -> dict[str, Any] | None:
        export = getattr(job, "export", None) if job.kind == jobs.EXPORT else None
        if export is None:
            return None
        described: dict[str, Any] = {
            "format": export.format,
            "history": export.history,
            "expires_at": export.expires_at,
        }
        if not export.may_be_read:
            return described | {"file": None, "size": None, "sha256": None}
        file = f"projects/{export.project.slug}/exports/{job.pk}/file"
        return described | {"file": file, "size": export.size, "sha256": export.sha256}
