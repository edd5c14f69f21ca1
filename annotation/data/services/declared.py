"""Refusal of more records of one person than a project declared to its population, and is charged for."""

from annotation.budget.services import names_more_than
from annotation.data.services.pseudonyms import reference_of
from annotation.data.services.shared_rows import HIDDEN
from annotation.errors import NamedTooOften
from annotation.models import Dataset, DatasetRole, Record
from annotation.models.retention import Forgetting
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import quota_of
from privacy.wording import as_message


def refuse_more_than_declared(dataset: Dataset) -> None:
    """Raise `NamedTooOften` before an upload becomes ready, in the transaction that holds its rows.

    Somebody whose records were forgotten has had their share: a series that counted these would hold them twice.
    """
    if dataset.role != DatasetRole.POOL:
        return
    project = dataset.project
    # Whoever joins, or ends another upload, waits here, and so do we.
    account = BudgetAccount.objects.select_for_update(no_key=True).get(pk=project.pool_account_id)
    quota = quota_of(account)
    if quota is None or account.unit != "record":
        return
    reason = ""
    if names_more_than(project, quota.records_per_person, with_dataset=dataset):
        reason = as_message(
            "Nothing was stored: with this file the project would name a person in more records than the {number} that "
            "were declared to its population. Bring at most so many of each person.",
            number=quota.records_per_person,
        )
    elif _names_somebody_forgotten(dataset):
        reason = as_message(
            "Nothing was stored: the file names a person whose records were forgotten here, and who has had all that "
            "was declared to the population. Leave them out."
        )
    if reason:
        raise NamedTooOften(HIDDEN, uploader_reason=reason)


def _names_somebody_forgotten(dataset: Dataset) -> bool:
    references = set(Forgetting.objects.filter(project=dataset.project_id).values_list("reference", flat=True))
    if not references:
        return False
    named = Record.objects.filter(dataset=dataset, contributor__isnull=False)
    people = named.order_by().values_list("contributor", flat=True).distinct().iterator()
    return any(reference_of(project=dataset.project, contributor=bytes(each or b"")) in references for each in people)
