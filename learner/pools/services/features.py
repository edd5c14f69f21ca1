"""Feature files: one for each dataset and featuriser version, made once, mapped read-only ever after."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
from django.core.files.storage import default_storage
from numpy.typing import NDArray

from annotation.errors import FileDamaged
from annotation.files import services as files
from annotation.models import Dataset, Project
from annotation.retention.services.emptying import emptied_rows, zero_rows
from learner.configuration.pool import featurizer_of
from learner.errors import ArtifactCorrupt
from learner.features import matrix
from learner.features.base import Featurizer
from learner.features.matrix import open_matrix, open_verified, write_matrix, zeroed
from learner.models import FeatureMatrix
from learner.pools.services import feature_parts
from learner.pools.services.feature_rows import BATCH_ROWS, holds_gate_output
from learner.pools.services.projections import ensure_projection
from learner.work.services.progress import TellParts, silent, spread
from privacy.services.faults import fault_point

# A row that is read maps what the system keeps of the file in one piece, up to 2 MiB: so many take 16 MiB at most.
SCATTERED_ROWS = 8


class StackedMatrix:
    """Several feature files read as one matrix: row numbers run on from file to file."""

    def __init__(self, parts: Sequence[NDArray[np.float32]], *, dimension: int) -> None:
        self.parts = parts
        self._starts = np.cumsum([0, *(len(part) for part in parts)])
        self.shape = (int(self._starts[-1]), dimension)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> NDArray[np.float32]:
        """Return a copy of rows, shape (n, dimension), in the order asked."""
        rows = _listed(rows, len(self))
        found = np.empty((len(rows), self.shape[1]), dtype=np.float32)
        for start, end, part in zip(self._starts, self._starts[1:], self.parts, strict=False):
            inside = (rows >= start) & (rows < end)
            found[inside] = part[rows[inside] - start]
        return found


class ScatteredRows:
    """Features of which rows far apart are read, few at once: with each a file maps its surroundings into memory."""

    def __init__(self, X: NDArray[np.float32]) -> None:
        self._X = X
        self.shape = X.shape

    def __len__(self) -> int:
        return len(self._X)

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> NDArray[np.float32]:
        """Return a copy of rows, shape (n, dimension), in the order asked, and keep nothing of the file."""
        rows = _listed(rows, len(self))
        found = np.empty((len(rows), self.shape[1]), dtype=np.float32)
        for start in range(0, len(rows), SCATTERED_ROWS):
            part = slice(start, start + SCATTERED_ROWS)
            found[part] = self._X[rows[part]]
            let_go_of_files(self._X)
        return found


def _listed(rows: slice | NDArray[np.int64], count: int) -> NDArray[np.int64]:
    return np.arange(*rows.indices(count)) if isinstance(rows, slice) else rows


def scattered(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return features for whoever reads rows far apart, by their numbers alone."""
    return cast(NDArray[np.float32], ScatteredRows(X))


def let_go_of_files(X: NDArray[np.float32]) -> None:
    """Give back the memory that was read of one feature file or of several stacked ones."""
    for part in X.parts if isinstance(X, StackedMatrix) else (X,):
        matrix.let_go(part)


def open_features(dataset: Dataset, tell: TellParts = silent) -> NDArray[np.float32]:
    """Return the features of a dataset, shape (rows, dimension), made now if nobody made them before.

    Row i belongs to the record with row number i; in the pool of a crowd project, to the i-th query that passed the
    gate, so that nothing the crowd side learns from ever came from a record.
    """
    stored = ensure_matrix(dataset, tell)
    try:
        return _open(stored)
    except FileNotFoundError:
        # Rows were emptied between the two lines, and the file has another name now.
        stored.refresh_from_db()
        return _open(stored)


def _open(stored: FeatureMatrix) -> NDArray[np.float32]:
    """Map a feature file whose bytes match its digest: a stored one is read for that, a copy was when it was made."""
    opener = partial(open_verified, sha256=stored.sha256) if files.are_local() else open_matrix
    try:
        return files.open_stored(str(stored.file.name), stored.sha256, opener)
    except FileDamaged as error:
        raise ArtifactCorrupt(str(error)) from error


def stacked_features(datasets: Sequence[Dataset], *, dimension: int, tell: TellParts = silent) -> NDArray[np.float32]:
    """Return the features of several datasets as one matrix; a single file is handed on as its memory map."""
    places = len(datasets)
    parts = [open_features(dataset, spread(tell, place, places)) for place, dataset in enumerate(datasets)]
    # Query strategies slice rows and ask for the shape, which is all that a stack of files can do.
    return parts[0] if len(parts) == 1 else cast(NDArray[np.float32], StackedMatrix(parts, dimension=dimension))


def ready_featurizer(project: Project) -> Featurizer:
    """Return the project's featuriser, once what it must find in the pool is paid for and found."""
    ensure_projection(project)
    return featurizer_of(project)


def ensure_matrix(dataset: Dataset, tell: TellParts = silent) -> FeatureMatrix:
    """Return the feature file of a dataset under its project's featuriser, written if it is missing."""
    featurizer = ready_featurizer(dataset.project)
    stored = FeatureMatrix.objects.filter(dataset=dataset, version=featurizer.version).first()
    if stored is not None and files.exists(str(stored.file.name)):
        return stored
    # Before the rows are read: what is emptied while they are is zeroed afterwards, by `zero_emptied`.
    empty = empty_slots(dataset)
    name = _name_of(dataset, featurizer.version, len(empty))
    batches = zeroed(feature_parts.transformed(dataset, featurizer, tell, emptied=len(empty)), empty)
    # Two workers may write the same bytes at once; each file appears whole, and one row names them.
    try:
        with files.written_file(name) as path:
            written = write_matrix(path, batches, dimension=featurizer.dimension)
    except (LookupError, FileNotFoundError):
        # They share their parts, which go once the first of them has stored the file.
        made = FeatureMatrix.objects.filter(dataset=dataset, version=featurizer.version, file=name).first()
        if made is None or not files.exists(name):
            raise
        return made
    values = {"file": name, "sha256": written.sha256, "rows": written.rows, "dimension": written.dimension}
    if stored is not None:
        FeatureMatrix.objects.filter(pk=stored.pk).update(**values, emptied=len(empty))
    stored, _ = FeatureMatrix.objects.get_or_create(
        dataset=dataset, version=featurizer.version, defaults=values | {"emptied": len(empty)}
    )
    feature_parts.forget_feature_parts(dataset, featurizer.version, len(empty))
    return stored


def _name_of(dataset: Dataset, version: str, emptied: int) -> str:
    """Return the name of a feature file: another one whenever other rows are zero."""
    return f"features/{dataset.project_id}/{dataset.pk}-{version}{f'-{emptied}' if emptied else ''}.npy"


def empty_slots(dataset: Dataset) -> NDArray[np.int64]:
    """Return the rows of a feature file that belong to empty slots, ascending; a gate's output has none."""
    return np.empty(0, dtype=np.int64) if holds_gate_output(dataset) else emptied_rows(dataset)


def zero_emptied(dataset: Dataset) -> int:
    """Give every feature file of an upload whose empty slots are not all zero a new one; return how many did.

    The old file is overwritten where those rows lie before it goes, since a worker may hold it open. A crash leaves
    either file whole, and the next call finishes.
    """
    rewritten = 0
    for stored in FeatureMatrix.objects.filter(dataset=dataset):
        empty = empty_slots(dataset)
        if stored.emptied == len(empty):
            continue
        try:
            X = files.open_stored(str(stored.file.name), stored.sha256, partial(open_matrix, sha256=stored.sha256))
        except (ArtifactCorrupt, FileDamaged, FileNotFoundError):
            # Whoever needs it makes it anew, from the records as they are now.
            stored.delete()
            continue
        name = _name_of(dataset, stored.version, len(empty))
        parts = (X[start : start + BATCH_ROWS] for start in range(0, len(X), BATCH_ROWS))
        with files.written_file(name) as path:
            written = write_matrix(path, zeroed(parts, empty), dimension=stored.dimension)
        fault_point("features_zeroed")
        changed = FeatureMatrix.objects.filter(pk=stored.pk, sha256=stored.sha256)
        rewritten += changed.update(file=name, sha256=written.sha256, emptied=len(empty))
    _remove_old_files(dataset)
    feature_parts.forget_parts_before(dataset, len(empty_slots(dataset)))
    return rewritten


def _remove_old_files(dataset: Dataset) -> None:
    """Overwrite and delete the files of an upload that no row names any more."""
    empty = empty_slots(dataset)
    if not empty.size:
        return
    named = set(FeatureMatrix.objects.filter(dataset=dataset).values_list("file", flat=True))
    folder = f"features/{dataset.project_id}"
    for name in files.names_in(folder):
        if name in named or not name.startswith(f"{folder}/{dataset.pk}-"):
            continue
        if files.are_local():
            zero_rows(_path_of(name), empty)
        files.delete(name)


def _path_of(name: str | None) -> Path:
    return Path(default_storage.path(name or ""))
