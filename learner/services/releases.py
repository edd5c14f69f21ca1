"""Released models: their files, what they promise, how well they do, and taking one back."""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from annotation.errors import FileDamaged
from annotation.models import Dataset, DatasetRole, DatasetState, Oracle, Project, Record
from annotation.services import files
from learner import selectors
from learner.artifacts import write_artifacts
from learner.environment import environment
from learner.errors import ArtifactCorrupt, ReasonMissing
from learner.estimators.catalogue import words_for
from learner.evaluation import count_outcomes, measures
from learner.features.base import Featurizer
from learner.intervals import wilson_interval
from learner.linear_model import LinearModel
from learner.model_card import AccountTerms, Card, EntryLine, Privacy
from learner.models import Evaluation, ModelRelease, ReleaseState, TrainingRun
from learner.services import features
from learner.signatures import Signer
from privacy.accounting.event import event_from_json
from privacy.accounting.units import atto_spent, nano_spent
from privacy.models import BudgetAccount, EntryKind, LedgerEntry
from privacy.selectors import guarantee
from privacy.wording import say

logger = logging.getLogger(__name__)
KEPT_DIGESTS = 10_000
_digested: dict[tuple[int, ...], str] = {}


@dataclass(frozen=True, slots=True)
class Score:
    """How well a model does on a public test set."""

    dataset: Dataset
    examples: int
    correct: int
    measures: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StagedRelease:
    """A release whose files are complete and which nobody can see yet."""

    folder: Path
    model: LinearModel
    featurizer: Featurizer
    digests: dict[str, str]
    accounts: list[AccountTerms]
    scores: list[Score]

    @property
    def digest(self) -> str:
        """One SHA-256 over the names and digests of all files."""
        return hashlib.sha256(json.dumps(self.digests, sort_keys=True).encode()).hexdigest()


@contextmanager
def staged_release(
    run: TrainingRun,
    model: LinearModel,
    featurizer: Featurizer,
    *,
    entries: Sequence[LedgerEntry],
) -> Iterator[StagedRelease]:
    """Write a release's files where nobody looks; what was not published on leaving is removed."""
    project = run.project
    folder = _drafts_of(project) / f".{run.pk}-{run.attempt}"
    for left in folder.parent.glob(f".*{run.pk}-*"):
        # Written by an attempt that was killed: paid for, never published.
        shutil.rmtree(left, ignore_errors=True)
    scores = [score_model(model, dataset) for dataset in public_test_sets(project)]
    accounts = [_terms(account) for account in selectors.accounts_of(project)]
    used = selectors.trained_on(run)
    card: Card = {
        "name": project.name,
        "version": run.version,
        "predicts": project.question,
        "estimator": words_for(project.estimator),
        "questions_asked": used.questions,
        "pool_size": used.pool_size,
        "sampling_rate": used.rate,
        "created_at": timezone.now().date().isoformat(),
        "metrics": [
            {
                "dataset": score.dataset.name,
                "examples": score.examples,
                "accuracy": score.correct / score.examples,
                "interval": wilson_interval(score.correct, score.examples),
                "macro_f1": score.measures["macro_f1"]["value"],
                "calibration_error": score.measures["calibration_error"]["value"],
            }
            for score in scores
        ],
    }
    privacy: Privacy = {
        "oracle": "crowd" if project.oracle == Oracle.CROWD else "trusted",
        "questions_shown": not project.hides_selection,
        "accounts": accounts,
        "entries": [_line(entry) for entry in entries],
        "heads": {account.label: guarantee(account).chain_head for account in selectors.accounts_of(project)},
    }
    try:
        digests = write_artifacts(
            folder, model=model, featurizer=featurizer, card=card, privacy=privacy, signer=signer()
        )
        yield StagedRelease(folder, model, featurizer, digests, accounts, scores)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def signer() -> Signer:
    """Return the site's signing key."""
    return Signer.from_secret(settings.SIGNING_KEY)


def publish(
    run: TrainingRun,
    staged: StagedRelease,
    *,
    entry: LedgerEntry,
    lineage: Sequence[LedgerEntry],
) -> ModelRelease:
    """Store the release and move its files into place, as the last step of the transaction that commits its cost."""
    project = run.project
    name = f"releases/{project.slug}/{run.version}"
    release = ModelRelease.objects.create(
        project=project,
        version=run.version,
        training_run=run,
        estimator=project.estimator,
        event=_paid_event(entry),
        weights=staged.model.to_json(),
        features=json.loads(staged.featurizer.to_json()),
        folder=name,
        digests=staged.digests,
        guarantee=staged.accounts,
        entry=entry,
        labels_used=run.labels_used,
        configuration=configuration_of(project),
        environment=environment(),
    )
    release.lineage.set(lineage)
    _store_scores(release, staged.scores)
    # Left by an attempt that died after moving and before its commit: no release names it.
    files.delete_folder(name)
    if files.are_local():
        staged.folder.rename(_path_of(name))
    else:
        for file in sorted(staged.digests):
            files.store(staged.folder / file, f"{name}/{file}")
    return release


def _drafts_of(project: Project) -> Path:
    """Return the folder of this host in which releases are put together: beside the others where it can be."""
    return _path_of(f"releases/{project.slug}") if files.are_local() else settings.VAR_DIR / "releases" / project.slug


def _paid_event(entry: LedgerEntry) -> dict[str, Any]:
    """Return the event whose price an entry stands for: its reservation's, or that of the entry it descends from."""
    paid = entry.parent
    while paid is not None and paid.kind == EntryKind.COMMIT:
        paid = paid.parent
    return dict(paid.event) if paid is not None else {}


def configuration_of(project: Project) -> dict[str, Any]:
    """Return a project's settings as they are now, without what changes by itself."""
    moving = {"id", "state", "labels_used_through"}
    fields = [field for field in project._meta.concrete_fields if not field.is_relation and field.name not in moving]
    values = {
        field.name: field.value_to_string(project) for field in fields if field.value_from_object(project) is not None
    }
    return {**values, "classes": project.classes, "columns": project.columns}


def folder_of(release: ModelRelease) -> Path:
    """Return the folder of a release's files, where they are stored on a file system."""
    return _path_of(release.folder)


@contextmanager
def files_at_hand(release: ModelRelease) -> Iterator[Path]:
    """Give a folder of this host with a release's files as they are stored, wherever that is."""
    if files.are_local():
        yield folder_of(release)
        return
    with TemporaryDirectory(prefix="dpal-release-") as folder:
        for name in files.names_in(release.folder):
            with default_storage.open(name) as source, (Path(folder) / name.rpartition("/")[2]).open("wb") as target:
                shutil.copyfileobj(source, target)
        yield Path(folder)


def evaluate_release(*, release: ModelRelease) -> None:
    """Measure a release on the public test sets it was not measured on; they are public, so this costs nothing."""
    missing = public_test_sets(release.project).exclude(evaluations__release=release)
    model = LinearModel.from_json(release.weights)
    _store_scores(release, [score_model(model, dataset) for dataset in missing])


def unmeasured_releases() -> QuerySet[ModelRelease]:
    """Return the releases that a public test set of their project has not measured yet."""
    ready = Dataset.objects.filter(
        project=OuterRef("project"),
        role=DatasetRole.PUBLIC_TEST,
        state=DatasetState.READY,
        records__label__isnull=False,
    ).exclude(evaluations__release=OuterRef("pk"))
    return ModelRelease.objects.filter(Exists(ready)).select_related("project")


def retire_release(*, release: ModelRelease, reason: str) -> ModelRelease:
    """Stop offering a release; its files and its entries stay."""
    if not reason.strip():
        raise ReasonMissing("Say why the release is retired; the reason stays with it.")
    with transaction.atomic():
        release.state = ReleaseState.RETIRED
        release.retired_reason = reason.strip()[:300]
        release.save(update_fields=["state", "retired_reason"])
    return release


def open_file(*, release: ModelRelease, name: str) -> BinaryIO:
    """Open a file of a release once its bytes match the digest in the database."""
    try:
        file = _open_stored(release, name) if name in release.digests else None
    except (OSError, FileDamaged):
        file = None
    if file is None:
        raise ArtifactCorrupt(say("release {pk} has no readable file of that name", pk=release.pk))
    status = os.fstat(file.fileno())
    # The kernel sets the change time, so what was digested once need not be again for every part of a download.
    unchanged = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if _digested.get(unchanged) != release.digests[name]:
        if hashlib.file_digest(file, "sha256").hexdigest() != release.digests[name]:
            file.close()
            raise ArtifactCorrupt(say("a file of release {pk} does not match its digest", pk=release.pk))
        if len(_digested) >= KEPT_DIGESTS:
            _digested.clear()
        _digested[unchanged] = release.digests[name]
        file.seek(0)
    return file


def _open_stored(release: ModelRelease, name: str) -> BufferedReader:
    return files.open_stored(f"{release.folder}/{name}", release.digests[name], lambda path: path.open("rb"))


def card_of(*, release: ModelRelease) -> str | None:
    """Return the model card of a release; None where its bytes are not those that were released."""
    try:
        with open_file(release=release, name="card.md") as file:
            return file.read().decode()
    except ArtifactCorrupt:
        logger.error("the card of release %s does not match its digest", release.pk)
        return None


def public_test_sets(project: Project) -> QuerySet[Dataset]:
    """Return the public labelled uploads of a project that are ready."""
    ready = Dataset.objects.filter(project=project, role=DatasetRole.PUBLIC_TEST, state=DatasetState.READY)
    return ready.filter(records__label__isnull=False).distinct().select_related("project").order_by("pk")


def score_model(model: LinearModel, dataset: Dataset) -> Score:
    """Measure the model on the public examples whose class is known."""
    known = Record.objects.filter(dataset=dataset, label__isnull=False).order_by("row_number")
    table = np.array(list(known.values_list("row_number", "label")), dtype=np.int64)
    X = features.open_features(dataset)[table[:, 0]]
    values = model.decision_function(X)
    counts = count_outcomes(model.probabilities(values), model.leaders(values), table[:, 1])
    return Score(dataset, len(table), int(np.trace(counts.confusion)), measures(counts))


def _store_scores(release: ModelRelease, scores: Sequence[Score]) -> None:
    Evaluation.objects.bulk_create(
        [
            Evaluation(
                release=release,
                dataset=score.dataset,
                examples=score.examples,
                correct=score.correct,
                measures=score.measures,
            )
            for score in scores
        ],
        # Two workers may measure the same; they find the same.
        ignore_conflicts=True,
    )


def _terms(account: BudgetAccount) -> AccountTerms:
    now = guarantee(account)
    return {
        "protects": account.label,
        "filter": now.filter,
        "unit": now.unit,
        "adjacency": now.adjacency,
        "limit_epsilon": now.epsilon_limit,
        "limit_delta": now.delta_limit,
        "spent_epsilon": now.epsilon_spent,
        "spent_delta": now.delta_spent,
    }


def _line(entry: LedgerEntry) -> EntryLine:
    reserved = entry.parent if entry.parent is not None and entry.kind == "commit" else entry
    return {
        "id": f"{entry.account.label} #{entry.sequence}",
        "kind": reserved.mechanism,
        "summary": reserved.purpose
        if reserved.mechanism.startswith("post")
        else event_from_json(reserved.event).summary(),
        "epsilon": nano_spent(entry.epsilon_nano or 0),
        "delta": atto_spent(entry.delta_atto),
    }


def _path_of(name: str) -> Path:
    return Path(default_storage.path(name))
