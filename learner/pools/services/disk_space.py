"""Room on the disk for what an attempt is going to write, looked for before it reserves anything.

Only sizes are looked at, and those are public: a row counts alike whatever it says. What is reserved is spent once a
private row was read, so a full disk must show before that.
"""

import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile

from django.conf import settings
from django.core.files.storage import default_storage

from annotation.files import services as files
from annotation.models import Dataset, Project
from learner.configuration.pool import featurizer_of
from learner.models import FeatureMatrix
from learner.pools.selectors import pool_datasets
from learner.pools.services import feature_parts, feature_rows

NUMBER_BYTES = 4
# Weights, card and code of a release, with room to spare.
RELEASE_BYTES = 16 * 1024 * 1024
# So much is taken for a moment, since a quota shows in nothing else; of what is beyond, the disk's own word is taken.
TAKEN_BYTES = 1024**3


def find_room(project: Project, datasets: Iterable[Dataset] | None = None) -> None:
    """Refuse with the error of a full disk what could not be written: missing feature files, and a release.

    To be called before the reservation of whatever reads the features of the project's pool, or of these uploads.
    """
    wanted = RELEASE_BYTES + sum(map(_missing_bytes, pool_datasets(project) if datasets is None else datasets))
    folder = Path(default_storage.location) if files.are_local() else settings.VAR_DIR  # type: ignore[attr-defined]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if shutil.disk_usage(folder).free < wanted:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if hasattr(os, "posix_fallocate"):
        with TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, min(wanted, TAKEN_BYTES))


def _missing_bytes(dataset: Dataset) -> int:
    """Return what the feature file of an upload takes if it is not there, its parts included."""
    featurizer = featurizer_of(dataset.project)
    stored = FeatureMatrix.objects.filter(dataset=dataset, version=featurizer.version).first()
    if stored is not None and files.exists(str(stored.file.name)):
        return 0
    copies = 2 if feature_parts.is_made_in_parts(dataset) else 1
    return feature_rows.row_count(dataset) * featurizer.dimension * NUMBER_BYTES * copies
