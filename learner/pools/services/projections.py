"""What a project's features need found in its pool: charged to it once, before any row is read."""

import hashlib
import json
from itertools import chain
from uuid import NAMESPACE_URL, uuid5

from django.db import transaction

from annotation.models import Project
from annotation.work.services.locks import hold_lock
from learner.configuration.pool import finding_of
from learner.errors import NothingToAsk
from learner.features.choice import Finding
from learner.models import FeatureProjection
from learner.pools import selectors as pool_selectors
from learner.pools.services.feature_rows import batches
from privacy.mechanisms.randomness import SecureRandom
from privacy.models import EntryKind, LedgerEntry
from privacy.services import ledger
from privacy.services.faults import fault_point

SUBJECT = "features"
# The first half of the lock's number; the second is the project's.
LOCK = 7_301


def ensure_projection(project: Project) -> None:
    """Find what the project's features need and do not have yet, on the pool as it is now.

    One worker does it while others wait. What an attempt that died had reserved is charged, and the next one reserves
    anew. Later uploads are read by what was found, which is free.
    """
    finding = finding_of(project)
    if finding is None or FeatureProjection.objects.filter(project=project).exists():
        return
    with hold_lock(kind=LOCK, number=project.pk):
        if not FeatureProjection.objects.filter(project=project).exists():
            _find(project, finding)


def projection_entries(project: Project) -> list[LedgerEntry]:
    """Return the committed entry that the project's features descend from, if there is one."""
    found = FeatureProjection.objects.filter(project=project).select_related("entry__account", "entry__parent").first()
    return [found.entry] if found else []


def _find(project: Project, finding: Finding) -> None:
    datasets = list(pool_selectors.pool_datasets(project))
    if not datasets:
        raise NothingToAsk(finding.no_pool)
    earlier = LedgerEntry.objects.filter(account=project.pool_account, subject=SUBJECT, kind=EntryKind.RESERVE)
    ledger.charge_open(entries=earlier)
    reservation = ledger.reserve(
        account=project.pool_account,
        event=finding.event,
        purpose=finding.purpose,
        key=uuid5(NAMESPACE_URL, f"dpal:projection:{project.pk}:{earlier.count() + 1}"),
        subject=SUBJECT,
    )
    components = finding.release(chain.from_iterable(map(batches, datasets)), SecureRandom())
    fault_point("projection_found")
    digest = hashlib.sha256(json.dumps(components).encode()).hexdigest()
    with transaction.atomic():
        entry = ledger.commit(reservation=reservation, output_digest=digest)
        FeatureProjection.objects.create(project=project, components=components, entry=entry)
