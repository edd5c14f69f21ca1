"""Version 0 as files to download: written on each host once from public settings, and anew whenever they change."""

import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings

from annotation.models import Dataset, Project, ProjectState
from learner.errors import ArtifactCorrupt, NoVersionZero, ReleaseBuried
from learner.features.base import Featurizer
from learner.models import FeatureMatrix
from learner.pools import starts
from learner.pools.configuration import featurizer_of
from learner.releases import evaluations, storage
from learner.releases.artifacts.environment import environment
from learner.releases.artifacts.files import MANIFEST, verify_manifest, write_artifacts
from learner.releases.cards.described import MARK, VERSION, zero_promise
from learner.releases.cards.rendering import Card
from learner.releases.evaluations import Score
from learner.releases.provenance_entries import provenance_of
from learner.releases.services import publishing

# A page waits while a test set goes through the features; a larger one is looked at once a worker has done that. A
# transformer reads a few hundred rows a second.
MOST_ROWS, MOST_SLOW_ROWS = 20_000, 500
SCORES = "scores.json"


@dataclass(frozen=True, slots=True)
class DescribedRelease:
    """Version 0 of a project: no row of the database, since it follows from the settings alone."""

    project: Project
    folder: Path
    digests: dict[str, str]
    scores: list[Score]
    created_at: datetime

    def open(self, name: str) -> BinaryIO:
        return (self.folder / name).open("rb")

    @property
    def card(self) -> str:
        return (self.folder / "card.md").read_text(encoding="utf-8")


def offers_version_zero(project: Project) -> bool:
    return project.state != ProjectState.DELETED and not starts.why_no_version_zero(project)


def described_release(project: Project) -> DescribedRelease:
    """Return version 0 with its files, written now if this host has none of these settings. Nothing is charged."""
    if project.state == ProjectState.DELETED:
        raise ReleaseBuried("Version 0 was deleted with its project.")
    why_not = starts.why_no_version_zero(project)
    if why_not:
        raise NoVersionZero(why_not)
    featurizer = featurizer_of(project)
    public = [dataset for dataset in evaluations.public_test_sets(project) if _can_be_read(dataset, featurizer)]
    folder = described_folder(project) / _fingerprint(project, featurizer, public)
    if not folder.exists():
        _write(folder, project, featurizer, public)
    try:
        digests = verify_manifest(folder / "files")
        stored = json.loads((folder / SCORES).read_text(encoding="utf-8"))
    except (OSError, ArtifactCorrupt) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ArtifactCorrupt(f"{MANIFEST} is incomplete; ask for it again") from error
    named = {dataset.pk: dataset for dataset in public}
    scores = [Score(named[one.pop("dataset")], **one) for one in stored]
    return DescribedRelease(project, folder / "files", digests, scores, project.configuration.created_at)


def described_folder(project: Project) -> Path:
    return Path(settings.VAR_DIR) / "version-zero" / str(project.pk)


def forget_described(project: Project) -> None:
    shutil.rmtree(described_folder(project), ignore_errors=True)


def _can_be_read(dataset: Dataset, featurizer: Featurizer) -> bool:
    if dataset.row_count <= (MOST_ROWS if featurizer.is_quick else MOST_SLOW_ROWS):
        return True
    return FeatureMatrix.objects.filter(dataset=dataset, version=featurizer.version).exists()


def _fingerprint(project: Project, featurizer: Featurizer, public: list[Dataset]) -> str:
    on = [
        str(project.configuration_id),
        [project.slug, project.name, project.question],
        sorted(project.merged_classes.items()),
        featurizer.version,
        [(dataset.pk, dataset.name) for dataset in public],
        environment(),
        storage.signer().public_key,
    ]
    return hashlib.sha256(json.dumps(on, sort_keys=True).encode()).hexdigest()


def described_facts(project: Project, scores: list[Score]) -> Card:
    return {
        "project": project.slug,
        "name": project.name,
        "version": VERSION,
        "predicts": project.question,
        "estimator": MARK,
        "questions_asked": 0,
        "pool_size": None,
        "sampling_rate": None,
        "created_at": project.configuration.created_at.date().isoformat(),
        "words_source": str(project.settings.get("words_source") or ""),
        # Beside itself there is nothing to say.
        "metrics": [{**publishing.metric_of(evaluations.evaluation_of(score)), "version_0": None} for score in scores],
    }


def _write(folder: Path, project: Project, featurizer: Featurizer, public: list[Dataset]) -> None:
    model = starts.version_zero_of(project)
    scores = [evaluations.score_model(model, dataset) for dataset in public]
    account = project.pool_account
    card = described_facts(project, scores)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", dir=folder.parent) as made:
        whole = Path(made) / "whole"
        write_artifacts(
            whole / "files",
            model=model,
            featurizer=featurizer,
            card=card,
            privacy=zero_promise(unit=account.unit, adjacency=account.adjacency, issued_at=card["created_at"]),
            provenance=provenance_of(project, featurizer, scores, [], []),
            signer=storage.signer(),
            outcomes=evaluations.public_outcomes(model, public),
        )
        (whole / SCORES).write_text(json.dumps([_stored(score) for score in scores]), encoding="utf-8")
        try:
            whole.rename(folder)
        except OSError:
            # Somebody else was quicker, with the same bytes.
            if not folder.exists():
                raise
    for other in folder.parent.iterdir():
        # Made of words that were changed since; whoever still reads a file of it has it open.
        if other != folder and not other.name.startswith("."):
            shutil.rmtree(other, ignore_errors=True)


def _stored(score: Score) -> dict[str, Any]:
    return {
        "dataset": score.dataset.pk,
        "examples": score.examples,
        "correct": score.correct,
        "measures": score.measures,
    }
