"""The last gate: a release candidate is released once its cost, its ledger, its mechanism and its files are checked."""

import json
import logging

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from annotation.models import Arrival
from annotation.work.services import jobs
from annotation.work.services.sending import send_on_commit
from learner.errors import ArtifactCorrupt
from learner.features.base import featurizer_from_json
from learner.models import MechanismAudit, ModelRelease, ReleaseState
from learner.pools.configuration import answers_are_open, estimator_of, learner_of
from learner.pools.keys import CHECK_RELEASE_TASK
from learner.pools.selectors import guarantee_accounts
from learner.releases import storage
from learner.releases.artifacts.environment import code_version
from learner.releases.artifacts.files import recompute_weights, verify_release
from learner.releases.canaries import LinearEstimator, fingerprint, send_canary
from privacy.ledger.audit import audit_accounts
from privacy.ledger.counter import site_counter
from privacy.ledger.models import EntryKind
from privacy.wording import as_message, as_plural_message, joined_messages

logger = logging.getLogger(__name__)
PAID_FOR = (EntryKind.COMMIT, EntryKind.POST_PROCESSING)


def check_release(*, release_id: int) -> ModelRelease:
    """Look at everything, note what was found, and offer the release if all of it holds."""
    release = ModelRelease.objects.select_related("project__pool_account", "project__labels_account").get(pk=release_id)
    if release.state != ReleaseState.CANDIDATE:
        return release
    # No noise of its own: where answers are no secret it is made of these and of what the gate let out.
    audit = None if answers_are_open(release.project) else mechanism_audit(release)
    found = {
        "entries": _entries(release),
        "ledger": _ledger(release),
        "mechanism": _mechanism(audit),
        "files": _files(release),
    }
    wrong = joined_messages(" ", found.values())
    candidate = ModelRelease.objects.filter(pk=release.pk, state=ReleaseState.CANDIDATE)
    checks = {name: problem or as_message("passed") for name, problem in found.items()}
    if wrong:
        logger.warning("release %s is held back: %s", release.pk, ", ".join(name for name, bad in found.items() if bad))
        candidate.update(checks=checks, held_back=wrong, mechanism_audit=audit)
    else:
        candidate.update(
            checks=checks, held_back="", mechanism_audit=audit, state=ReleaseState.RELEASED, released_at=Now()
        )
        jobs.send_project_changed(release.project_id)
    release.refresh_from_db()
    return release


def check_again(*, release: ModelRelease) -> None:
    with transaction.atomic():
        held = ModelRelease.objects.filter(pk=release.pk, state=ReleaseState.CANDIDATE)
        # Without a reason it counts as unchecked, so that the beat sees to it where the task is lost.
        if held.update(held_back="", checks={}, mechanism_audit=None):
            send_on_commit(CHECK_RELEASE_TASK, release_id=release.pk)


def unchecked_releases() -> QuerySet[ModelRelease]:
    return ModelRelease.objects.filter(state=ReleaseState.CANDIDATE, held_back="")


def _entries(release: ModelRelease) -> str:
    unpaid = release.lineage.exclude(kind__in=PAID_FOR).count()
    # A version of a stream is free itself and descends from what the whole stream paid.
    paid = release.lineage.filter(kind=EntryKind.COMMIT).exists()
    if unpaid or not paid or release.entry.kind not in PAID_FOR:
        return "Not every ledger entry it descends from is committed."
    return ""


def _ledger(release: ModelRelease) -> str:
    marks = site_counter().marks()
    for account in guarantee_accounts(release.project):
        for verdict in audit_accounts(scope=account.scope, marks=marks):
            if verdict.differing:
                return as_plural_message(
                    "The ledger audit of '{word}' found {n} difference.",
                    "The ledger audit of '{word}' found {n} differences.",
                    word=account.label,
                    n=verdict.differing,
                )
    return ""


def _mechanism(verdict: MechanismAudit | None) -> str:
    if verdict is None or verdict.epsilon_lower_bound <= verdict.charged_epsilon:
        return ""
    return as_message(
        "The canary audit found epsilon {shown:.3g} in {estimator}, above the charged {charged:.3g}.",
        estimator=verdict.estimator,
        shown=verdict.epsilon_lower_bound,
        charged=verdict.charged_epsilon,
    )


def mechanism_audit(release: ModelRelease) -> MechanismAudit:
    """Return the canary's verdict on the estimator of a release, asked once for each configuration and code version."""
    estimator = _estimator_of(release)
    key = fingerprint(estimator, code=code_version(), trials=settings.CANARY_TRIALS)
    known = MechanismAudit.objects.filter(pk=key).first()
    if known is not None:
        return known
    canary = send_canary(estimator, trials=settings.CANARY_TRIALS)
    verdict, _ = MechanismAudit.objects.get_or_create(
        pk=key,
        defaults={
            "estimator": type(estimator).__name__,
            "charged_epsilon": canary.charged,
            "epsilon_lower_bound": canary.epsilon_lower_bound,
            "trials": canary.trials,
        },
    )
    return verdict


def _estimator_of(release: ModelRelease) -> LinearEstimator:
    featurizer = featurizer_from_json(json.dumps(release.features))
    if release.project.arrival == Arrival.STREAM:
        return learner_of(release.project, featurizer)
    return estimator_of(release.project, featurizer)


def _files(release: ModelRelease) -> str:
    try:
        with storage.files_at_hand(release) as folder:
            digests = verify_release(folder, public_key=storage.signer().public_key)
            recompute_weights(folder)
    except ArtifactCorrupt as error:
        return as_message("Its files do not verify: {reason}.", reason=error)
    return "" if digests == release.digests else "Its files are not those that were committed."
