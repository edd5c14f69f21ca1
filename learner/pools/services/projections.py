"""Principal directions of a project's images: charged to the pool once, before any row is read."""

import hashlib
import json
from collections.abc import Iterator
from uuid import NAMESPACE_URL, uuid5

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from annotation.models import Features, Project
from annotation.work.services.locks import hold_lock
from learner.configuration.pool import principal_featurizer_of, projection_event
from learner.errors import NothingToAsk
from learner.features.image import ImageFeaturizer
from learner.features.principal import principal_directions
from learner.models import FeatureProjection
from learner.pools import selectors as pool_selectors
from learner.pools.services.pixels import pixel_batches
from privacy.mechanisms.randomness import SecureRandom
from privacy.mechanisms.second_moments import release_second_moments
from privacy.models import EntryKind, LedgerEntry
from privacy.services import ledger
from privacy.services.faults import fault_point
from privacy.wording import as_message

SUBJECT = "features"
# The first half of the lock's number; the second is the project's.
LOCK = 7_301


def ensure_projection(project: Project) -> None:
    """Find the directions of a project that asks for them and has none yet, on the pool as it is now.

    One worker does it while others wait. What an attempt that died had reserved is charged, and the next one reserves
    anew. Later uploads are projected on the same directions, which is free.
    """
    if project.features != Features.PRINCIPAL or FeatureProjection.objects.filter(project=project).exists():
        return
    with hold_lock(kind=LOCK, number=project.pk):
        if not FeatureProjection.objects.filter(project=project).exists():
            _find(project)


def projection_entries(project: Project) -> list[LedgerEntry]:
    """Return the committed entry that the project's features descend from, if there is one."""
    found = FeatureProjection.objects.filter(project=project).select_related("entry__account", "entry__parent").first()
    return [found.entry] if found else []


def _find(project: Project) -> None:
    datasets = list(pool_selectors.pool_datasets(project))
    if not datasets:
        raise NothingToAsk("There is no pool to find principal directions in.")
    earlier = LedgerEntry.objects.filter(account=project.pool_account, subject=SUBJECT, kind=EntryKind.RESERVE)
    ledger.charge_open(entries=earlier)
    featurizer = principal_featurizer_of(project)
    event = projection_event(project)
    reservation = ledger.reserve(
        account=project.pool_account,
        event=event,
        purpose=as_message("find principal directions of the images"),
        key=uuid5(NAMESPACE_URL, f"dpal:projection:{project.pk}:{earlier.count() + 1}"),
        subject=SUBJECT,
    )

    def blocks(pixels: ImageFeaturizer) -> Iterator[NDArray[np.float32]]:
        for dataset in datasets:
            for batch in pixel_batches(dataset):
                yield pixels.transform(batch)

    moments = release_second_moments(blocks(featurizer.pixels), event, rng=SecureRandom())
    components = principal_directions(moments, featurizer.n_components).tolist()
    fault_point("projection_found")
    digest = hashlib.sha256(json.dumps(components).encode()).hexdigest()
    with transaction.atomic():
        entry = ledger.commit(reservation=reservation, output_digest=digest)
        FeatureProjection.objects.create(project=project, components=components, entry=entry)
