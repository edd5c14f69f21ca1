"""Tables registered as pools: by address and columns, in place of an upload; only what passes the gate comes here."""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from annotation.choices.gates import run_event
from annotation.data.services import mappings, uploads
from annotation.errors import InvalidUpload
from annotation.models import Arrival, BadRows, DataKind, Dataset, DatasetRole, DatasetState, Oracle, Project
from annotation.tables import addresses, sources
from annotation.work.services import jobs
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import quota_of
from privacy.wording import as_message

CROWD_ONLY = as_message(
    "address: a table is registered for a crowd's pool of texts; whoever sees single records needs them on this site. "
    "Upload them"
)
TOGETHER = as_message(
    "address: this project counts uploads together, and no record may stand in two of them; snapshots of a table share "
    "records. Register it in a project without gate_window"
)
UNPROVED = as_message(
    "address: this project's gate has no proof over a table that stays where it is; upload the records, or choose "
    "another gate"
)
COUNTED = as_message(
    "address: a population counts this project's records by person, which only the database can; upload the records"
)
ALONE = as_message(
    "role: rows of a registered table are compared with nothing, as nobody reads them unpaid. So data of another role "
    "cannot be told to be other rows, and stand in another project"
)
NO_NAMES = as_message("contributor: this project protects records, so nobody reads who said them; name no column")


def register_table(
    *,
    project: Project,
    address: str,
    name: str = "",
    text: str = "text",
    contributor: str | None = None,
    snapshot: int | None = None,
    registered_by: AbstractBaseUser | None = None,
    send: bool = True,
) -> Dataset:
    """Note a table and have a worker read the ends of its files; `InvalidUpload` names the field and the rule.

    The gate follows at once, as after an upload, and the same is charged. No row is read before that is reserved. Of an
    Iceberg table the current snapshot is registered, or the one whose number `snapshot` is.
    """
    uploads.check_upload(project=project, role=DatasetRole.POOL, bad_rows=BadRows.KEEP_GOOD, size=0)
    _refuse_project(project)
    mapping = {"text": text} | ({"contributor": contributor} if contributor else {})
    layout = mappings.layout_of(project, DatasetRole.POOL, mapping)
    if contributor and not layout.contributor_required:
        raise InvalidUpload(NO_NAMES)
    jobs.refuse_when_busy()
    # Refuses what lies outside of what is allowed; what is there is for the worker to find out.
    addresses.store_at(address, slug=project.slug)
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        refuse_beside(project=project, role=DatasetRole.POOL, is_table=True)
        dataset = Dataset.objects.create(
            project=project,
            job=jobs.open_job(project=project, kind=jobs.IMPORT, owner=registered_by, send=send),
            name=(name or address.rstrip("/").rpartition("/")[2])[:200],
            role=DatasetRole.POOL,
            mapping=mapping,
            in_columns=True,
            uploaded_by=registered_by,  # type: ignore[misc]
        )
        sources.open_source(dataset, address, snapshot)
    return dataset


def may_register(project: Project) -> bool:
    """Say whether a table could be registered in a project, whatever it is."""
    try:
        _refuse_project(project)
    except InvalidUpload:
        return False
    return True


def refuse_beside(*, project: Project, role: str, is_table: bool = False) -> None:
    """Raise `InvalidUpload` where a registered table and data of another role would stand side by side."""
    others = Dataset.objects.filter(project=project).exclude(state=DatasetState.REFUSED).exclude(role=role)
    if (is_table and others.exists()) or (role != DatasetRole.POOL and sources.tables_of(project).exists()):
        raise InvalidUpload(ALONE)


def _refuse_project(project: Project) -> None:
    """Refuse projects for whose promise the rows would have to be here."""
    if (project.oracle, project.arrival, project.data_kind) != (Oracle.CROWD, Arrival.POOL, DataKind.TEXT):
        raise InvalidUpload(CROWD_ONLY)
    if project.gate_window is not None:
        raise InvalidUpload(TOGETHER)
    if not run_event(project.settings).proved_over_snapshots:
        raise InvalidUpload(UNPROVED)
    account = BudgetAccount.objects.get(pk=project.pool_account_id)
    if account.unit == "record" and quota_of(account) is not None:
        raise InvalidUpload(COUNTED)
