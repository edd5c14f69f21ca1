"""Refusals of the annotation layer."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dpal.errors import Unreadable
from privacy.wording import in_english, joined_rules


class AnnotationError(Exception):
    """Base of all refusals of the annotation layer; `status` is the HTTP status that fits."""

    status = 409


class Unprocessable(AnnotationError):
    status = 422


class AddressRefused(Unprocessable):
    """An address is none that the site may send to."""


class DraftGone(AnnotationError):
    """The draft was opened or discarded by another request."""


class InvalidUpload(Unprocessable):
    """The file or its mapping cannot be read at all; nothing was stored."""


@contextmanager
def refusing_unreadable() -> Iterator[None]:
    """Raise `InvalidUpload` for what the client's reader calls `Unreadable`."""
    try:
        yield
    except Unreadable as error:
        raise InvalidUpload(str(error)) from None


class FewWouldPass(InvalidUpload):
    """Fewer texts of a file would pass the gate than the first model needs; nothing was stored or charged.

    The numbers are as private as the file, so this is raised while its sender waits and nowhere else.
    """

    field = "confirm_few"

    def __init__(self, expected: float, low: int, high: int, *, needed: int) -> None:
        super().__init__(
            in_english(
                "About {expected:.1f} texts would pass the gate (95 %: {low} to {high}); the first model needs "
                "{needed}. Nothing was stored or charged; send confirm_few to run it anyway.",
                expected=expected,
                low=low,
                high=high,
                needed=needed,
            )
        )


class UploadRefused(Unprocessable):
    """Nothing was stored of an upload; `uploader_reason` is the reason where that is for who uploaded it alone."""

    def __init__(self, message: str, *, uploader_reason: str = "") -> None:
        super().__init__(message)
        self.uploader_reason = uploader_reason


class PriceRefused(Unprocessable):
    """Something has more charged than whoever asked for it agreed to."""


class RowsShared(UploadRefused):
    """A row of the upload stands in other data of the project."""


class NamedTooOften(UploadRefused):
    """An upload names somebody more often than the project's population was told."""


class LeaseExpired(AnnotationError):
    """The assignment's lease ran out and the question went to somebody else."""


class AlreadyLabelled(AnnotationError):
    """The assignment already carries a different label."""


class InvalidChoice(Unprocessable):
    """The project has no such class."""


class UndoRefused(AnnotationError):
    """There is no answer of the last minutes that could still be taken back."""


class NotMember(AnnotationError):
    status = 403


class GroupRefused(AnnotationError):
    """A group cannot be named, filled or left like this."""


class RoleRefused(AnnotationError):
    """Somebody cannot be given this role, or not in this way."""


class LimitRequestRefused(AnnotationError):
    """A request for a higher limit cannot be made, or not be decided on like this."""


class ConfigurationFrozen(AnnotationError):
    """A field that changes the guarantee cannot change after the first charge."""


class InvalidConfiguration(Unprocessable):
    """The project's configuration names a combination that is refused; `broken` has the rule of each field to blame."""

    def __init__(self, message: str, *, broken: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.broken = broken or {}


def refuse_broken(broken: Mapping[str, str]) -> None:
    if broken:
        raise InvalidConfiguration(joined_rules(broken), broken=broken)


class WorkLost(AnnotationError):
    """Another worker took the work over after the lease lapsed; nothing of this attempt may be stored."""


class WorkCancelled(AnnotationError):
    """A manager has cancelled the work; it stopped at a point where nothing of this attempt is stored."""


class LinkEnded(AnnotationError):
    """An invitation or crowd link does not exist, was revoked, used up, or is over."""

    status = 410


class ArrivalRefused(AnnotationError):
    """A crowd platform did not sign what the address says of a participant; nobody was let in."""

    status = 403


class ArrivalUnchecked(AnnotationError):
    """The platform's keys are not here yet, so its signature cannot be checked; a worker fetches them."""

    status = 503
    retry_after_seconds = 30


class TooOften(AnnotationError):
    status = 429

    def __init__(self, message: str, *, retry_after_seconds: int = 60) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class SiteBusy(AnnotationError):
    """More heavy work waits than the site takes on; what people do by hand goes on."""

    status = 503
    retry_after_seconds = 60


class StorageFull(AnnotationError):
    """There is no room for a file; nothing of it was kept."""

    status = 507
    retry_after_seconds = 600


class TableChanged(AnnotationError):
    """A registered table is not the one that was registered, or cannot be read; it counts for nothing as it is."""


class StorageAway(AnnotationError):
    """The store of files does not answer, or does not let us; what was under way may be tried again."""

    status = 503
    retry_after_seconds = 10


class ScannerAway(AnnotationError):
    """The virus scanner gives no clear answer, so nobody knows what is in a file; it may be asked again."""

    status = 503


class FileDamaged(AnnotationError):
    """A stored file is not the one that was stored."""


class IdempotencyKeyReused(Unprocessable):
    """An Idempotency-Key came with another request, or other records, than before."""


class NotAStream(AnnotationError):
    """The project takes uploads, not records one by one."""


class InvalidRecords(Unprocessable):
    """Posted records break a rule; nothing was stored. `errors` names rows, fields and rules, never content."""

    def __init__(self, errors: Sequence[Mapping[str, Any]], message: str) -> None:
        super().__init__(message)
        self.errors = list(errors)


class StreamFull(AnnotationError):
    """More records wait to be examined than the site keeps."""

    status = 429
    retry_after_seconds = 60


class ProjectClosed(AnnotationError):
    """The project is archived or deleted, and can only be read."""


class ForgettingRefused(AnnotationError):
    """Nothing of the contributor is there, or it cannot be erased at this moment; nothing was changed."""
