"""Gathers settings, data and ledger for the manifest of a release."""

import base64
from collections.abc import Sequence
from typing import Any

from annotation.models import Dataset, Project
from learner.features.base import Featurizer
from learner.models import FeatureMatrix
from learner.releases.artifacts.provenance import DataDigests, LedgerPlace, Provenance
from learner.releases.artifacts.settings import configuration_digest, configuration_of
from learner.releases.evaluations import Score
from privacy.ledger.checkpoints import log_of
from privacy.ledger.models import BudgetAccount, LedgerEntry


def provenance_of(
    project: Project,
    featurizer: Featurizer,
    scores: Sequence[Score],
    accounts: Sequence[BudgetAccount],
    entries: Sequence[LedgerEntry],
) -> Provenance:
    return {
        "configuration_sha256": configuration_digest(configuration_of(project)),
        "data": _data(featurizer, scores),
        "ledger": [_place(account, entries) for account in accounts],
    }


def _data(featurizer: Featurizer, scores: Sequence[Score]) -> DataDigests:
    measured = {score.dataset.pk: score.dataset.name for score in scores}
    public = _digests(Dataset.objects.filter(pk__in=measured), featurizer.version)
    return {"public_sha256": {measured[number]: digest for number, digest in public}}


def _digests(datasets: Any, featurizer_version: str) -> list[tuple[int, str]]:
    found = FeatureMatrix.objects.filter(dataset__in=datasets, version=featurizer_version)
    return list(found.order_by("dataset").values_list("dataset", "sha256"))


def _place(account: BudgetAccount, entries: Sequence[LedgerEntry]) -> LedgerPlace:
    log = log_of(account)
    own = [entry for entry in entries if entry.account_id == account.pk]
    return {
        "protects": account.plain_label,
        "checkpoint": log.checkpoint(),
        "entries": [
            {
                "sequence": entry.sequence,
                "hash": entry.hash,
                "proof": [base64.b64encode(each).decode() for each in log.inclusion(entry.sequence, log.size)],
            }
            for entry in own
        ],
    }
