"""What a release's manifest says of its settings, its data and its ledger, gathered while its files are written."""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from annotation.models import Dataset, Project
from learner.evaluations.services.measuring import Score
from learner.features.base import Featurizer
from learner.models import FeatureMatrix
from learner.releases.provenance import DataDigests, LedgerPlace, Provenance
from learner.releases.selectors import KEPT_INSIDE
from privacy.models import BudgetAccount, LedgerEntry
from privacy.services.checkpoints import log_of


def provenance_of(
    project: Project,
    featurizer: Featurizer,
    scores: Sequence[Score],
    accounts: Sequence[BudgetAccount],
    entries: Sequence[LedgerEntry],
) -> Provenance:
    """Return settings, data and ledger of a version that is about to be released."""
    return {
        "configuration_sha256": configuration_digest(configuration_of(project)),
        "data": _data(featurizer, scores),
        "ledger": [_place(account, entries) for account in accounts],
    }


def configuration_of(project: Project) -> dict[str, Any]:
    """Return a project's settings as they are now, without what changes by itself."""
    moving = {"id", "state", "labels_used_through", "labels_used_at"}
    fields = [field for field in project._meta.concrete_fields if not field.is_relation and field.name not in moving]
    values = {
        field.name: field.value_to_string(project) for field in fields if field.value_from_object(project) is not None
    }
    values |= {name: str(value) for name in project.absent if (value := getattr(project, name)) is not None}
    return {**values, "classes": project.classes, "columns": project.columns}


def configuration_digest(configuration: dict[str, Any]) -> str:
    """Return the SHA-256 of settings as the interface shows them: guidelines, which may quote a record, stay inside."""
    shown = {name: value for name, value in configuration.items() if name not in KEPT_INSIDE}
    text = json.dumps(shown, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


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
        "protects": account.label,
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
