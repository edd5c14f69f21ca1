"""Forgetting a contributor: asked for by name, found by pseudonym, remembered by nothing but a keyed digest."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from annotation.data.services import drafts, pool_files
from annotation.data.services.references import reference_of
from annotation.errors import ForgettingRefused
from annotation.models import (
    Arrival,
    Dataset,
    DatasetRole,
    DatasetState,
    GateRun,
    GateState,
    Label,
    Project,
    Query,
    QueryState,
    Record,
    WorkState,
)
from annotation.models.forgetting import Forgetting
from annotation.retention.services import emptying
from annotation.tables import sources
from annotation.tables.cells import BadCell, read_contributor
from annotation.tables.pseudonym_keys import site_pseudonyms
from annotation.work.services import jobs
from privacy.wording import as_message

WAITING = (QueryState.OPEN, QueryState.DISPUTED, QueryState.SET_ASIDE, QueryState.IN_REVIEW)


@dataclass(frozen=True, slots=True)
class Traces:
    """What a project holds of a contributor, for the manager who is about to erase it."""

    records: int
    uploads: tuple[Dataset, ...]
    waiting_questions: int
    answers: int
    passed_gate: bool
    # Whose rows are their owner's, so that nobody here can say whether they hold any of the contributor.
    registered_tables: int


def records_of(*, project: Project, contributor: bytes) -> QuerySet[Record]:
    """Return the records of a contributor that lie in the database; only private uploads have any."""
    return Record.objects.filter(dataset__project=project, dataset__role=DatasetRole.POOL, contributor=contributor)


def traces_of(*, project: Project, name: str) -> Traces:
    """Count what the project holds of a contributor, without changing anything."""
    contributor = pseudonym_of(name)
    records = records_of(project=project, contributor=contributor)
    in_columns = {
        part: len(rows) for part, rows in pool_files.contributor_parts(project=project, contributor=contributor)
    }
    held = Q(pk__in=records.values("dataset")) | Q(pk__in={part.dataset_id for part in in_columns})
    uploads = tuple(Dataset.objects.filter(held).order_by("pk"))
    questions = Query.objects.filter(project=project, record__in=records)
    return Traces(
        records=records.count() + sum(in_columns.values()),
        uploads=uploads,
        waiting_questions=questions.filter(state__in=WAITING).count(),
        answers=Label.objects.filter(query__in=questions).count(),
        passed_gate=GateRun.objects.filter(dataset__in=uploads, state=GateState.COMMITTED).exists(),
        registered_tables=sources.tables_of(project).count(),
    )


def pseudonym_of(name: str) -> bytes:
    """Return what the project knows a contributor by; a name is read as an upload would read it."""
    try:
        pseudonym = site_pseudonyms().of(read_contributor(name, required=True))
    except BadCell:
        pseudonym = None
    if pseudonym is None:
        raise ForgettingRefused("Name the contributor as the upload's column does.")
    return pseudonym


def request_forgetting(*, project: Project, name: str, actor: str, send: bool = True) -> Forgetting:
    """Open the job that forgets a contributor; asked for twice before it is done, it is one.

    Refused where the project holds nothing of theirs, and while something reads whole uploads, since what it has read
    is out of reach; both is over soon, and says nothing about the contributor.
    """
    contributor = pseudonym_of(name)
    reference = reference_of(project=project, contributor=contributor)
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        standing = (
            Forgetting.objects.filter(project=project, reference=reference, finished_at=None)
            .select_related("job")
            .first()
        )
        if standing is not None:
            if standing.job.state == WorkState.FAILED:
                standing.job = jobs.open_job(project=project, kind=jobs.FORGET, send=send)
                standing.save(update_fields=["job"])
            return standing
        refuse_while_read(project)
        if not _holds(project, contributor):
            raise ForgettingRefused(_nothing_found(project))
        return Forgetting.objects.create(
            project=project,
            job=jobs.open_job(project=project, kind=jobs.FORGET, send=send),
            contributor=contributor,
            reference=reference,
            actor=actor,
        )


def refuse_while_read(project: Project) -> None:
    """Refuse while an upload is being stored or passes the gate."""
    if Dataset.objects.filter(project=project, state=DatasetState.RECEIVING).exists():
        raise ForgettingRefused("An upload is being read. Try again once it is stored.")
    if GateRun.objects.filter(project=project, state=GateState.RUNNING).exists():
        raise ForgettingRefused("An upload is passing the gate. Try again once it has.")


def _holds(project: Project, contributor: bytes) -> bool:
    stored = records_of(project=project, contributor=contributor)
    return stored.exists() or any(True for _ in pool_files.contributor_parts(project=project, contributor=contributor))


def _nothing_found(project: Project) -> str:
    if project.arrival == Arrival.STREAM:
        return "A stream stores no contributors, so nothing in it can be told to be theirs."
    if sources.tables_of(project).exists():
        return as_message(
            "This site keeps no record that names that contributor. Rows of a registered table are its owner's: write "
            "the table again without them and register it anew, which the gate charges like another upload."
        )
    return "No record of this project names that contributor."


def forget_records(*, forgetting: Forgetting) -> None:
    """Empty every record of the contributor in one transaction; what passed a gate stays, it names nobody."""
    if forgetting.contributor is None:
        return
    contributor = bytes(forgetting.contributor)
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).get(pk=forgetting.project_id)
        # First, since what counts the uploads' texts goes with what is empty then.
        pool_files.empty_contributor(project=project, contributor=contributor)
        emptying.empty_records(records_of(project=project, contributor=contributor), project=project)
        emptying.forget_encounters(project=project, contributor=contributor)
        emptying.void_exports(project)


def discard_drafts(project: Project) -> None:
    """Throw away the files that wait for a look before they are uploaded: nobody knows yet whom they name."""
    for draft in project.upload_drafts.all():
        drafts.discard_draft(draft=draft)


def finish_forgetting(*, forgetting: Forgetting) -> None:
    """Drop the pseudonym as the last thing that was kept, in the caller's transaction."""
    Forgetting.objects.filter(pk=forgetting.pk, finished_at=None).update(contributor=None, finished_at=Now())
