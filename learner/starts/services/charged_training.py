"""The one private training on a project's own labelled examples: charged to their account before a row is read."""

import hashlib
import json
import logging
from uuid import NAMESPACE_URL, uuid5

import numpy as np
from django.db import transaction

from annotation.models import Dataset, Record
from annotation.work.services.locks import hold_lock
from learner import selectors
from learner.configuration.classes import learned_classes, learned_numbers
from learner.configuration.pool import estimator_of
from learner.estimators.choice import FitsSlots
from learner.features.base import Featurizer
from learner.linear_model import LinearModel
from learner.models import WarmStart
from learner.pools.services import disk_space, features
from privacy.errors import SimulationNotReleasable
from privacy.models import BudgetAccount, EntryKind, LedgerEntry
from privacy.services import ledger
from privacy.services.faults import fault_point
from privacy.wording import as_message

logger = logging.getLogger(__name__)
SUBJECT = "start"
# The first half of the lock's number; the second is the upload's.
LOCK = 7_302


def train_charged(dataset: Dataset) -> WarmStart:
    """Return the model of a private start, trained and paid for unless another worker has done so meanwhile.

    What an attempt that died had reserved is charged, and this one reserves anew if the account still can.
    """
    with hold_lock(kind=LOCK, number=dataset.pk):
        return WarmStart.objects.filter(dataset=dataset).first() or _train(dataset)


def _train(dataset: Dataset) -> WarmStart:
    account = dataset.account
    assert account is not None
    attempt = _settle_dead(account) + 1
    disk_space.find_room(dataset.project, [dataset])
    reservation = ledger.reserve(
        account=account,
        event=selectors.start_event(dataset.project),
        purpose=as_message("train the first model on private examples"),
        key=uuid5(NAMESPACE_URL, f"dpal:start:{dataset.pk}:{attempt}"),
        subject=SUBJECT,
    )
    featurizer = features.ready_featurizer(dataset.project)
    weights = _fit(dataset, featurizer).to_json()
    fault_point("start_fitted")
    digest = hashlib.sha256(json.dumps(weights, sort_keys=True).encode()).hexdigest()
    with transaction.atomic():
        entry = ledger.commit(reservation=reservation, output_digest=digest)
        stored = WarmStart.objects.create(
            dataset=dataset,
            weights=weights,
            features_version=featurizer.version,
            examples=dataset.row_count,
            entry=entry,
        )
    logger.info("project %s starts from private examples", dataset.project_id)
    return stored


def _settle_dead(account: BudgetAccount) -> int:
    """Charge what attempts that ended without an output had reserved, and return how many attempts there were."""
    earlier = LedgerEntry.objects.filter(account=account, subject=SUBJECT, kind=EntryKind.RESERVE)
    ledger.charge_open(entries=earlier)
    return earlier.count()


def _fit(dataset: Dataset, featurizer: Featurizer) -> LinearModel:
    project = dataset.project
    estimator = estimator_of(project, featurizer)
    known = Record.objects.filter(dataset=dataset, label__isnull=False).order_by("row_number")
    table = np.array(list(known.values_list("row_number", "label")), dtype=np.int64)
    X, classes = np.asarray(features.open_features(dataset)[table[:, 0]]), learned_numbers(project, table[:, 1])
    if isinstance(estimator, FitsSlots):
        # Batches are cut from all rows, whose number is public, and not from those with a label.
        estimator.fit_slots(X, classes, slots=table[:, 0], n_slots=dataset.row_count)
    else:
        estimator.fit(X, classes)
    if not estimator.releasable:
        raise SimulationNotReleasable("The noise came from a seed, so the model carries no guarantee.")
    return LinearModel(estimator.coef_, estimator.intercept_, learned_classes(project), estimator.multiclass)
