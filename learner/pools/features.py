"""Feature matrices of datasets."""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, cast

import numpy as np
import pyarrow as pa
from django.conf import settings
from django.core.files.storage import default_storage
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from django.utils import timezone
from numpy.typing import NDArray

from annotation.data.pixels import mapped_images
from annotation.data.services.forgetting import emptied_rows, zero_rows
from annotation.errors import FileDamaged
from annotation.models import DataKind, Dataset, DatasetRole, Oracle, Project, Query, Record
from annotation.work.services import files
from learner.errors import ArtifactCorrupt
from learner.features import matrix
from learner.features.base import Featurizer
from learner.features.batches import BatchEngine, features_step, values_batch, vectors_in
from learner.features.crew import Crew
from learner.features.matrix import HEADER_BYTES, MatrixWriter, open_matrix, open_verified, write_matrix, zeroed
from learner.models import FeatureMatrix
from learner.pools.attempts import TellParts, silent, spread
from learner.pools.configuration import featurizer_of
from learner.pools.records import pool_datasets
from privacy.ledger.faults import fault_point

NUMBER_BYTES = 4
# Weights, card and code of a release, with room to spare.
RELEASE_BYTES = 16 * 1024 * 1024
# So much is taken for a moment, since a quota shows in nothing else; of what is beyond, the disk's own word is taken.
TAKEN_BYTES = 1024**3


def find_room(project: Project, datasets: Iterable[Dataset] | None = None) -> None:
    """Refuse with the error of a full disk what could not be written: missing feature files, and a release."""
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
    copies = 2 if is_made_in_parts(dataset) else 1
    return row_count(dataset) * featurizer.dimension * NUMBER_BYTES * copies


BATCH_IMAGES = 8192


def pixel_batches(dataset: Dataset) -> Iterator[NDArray[np.uint8]]:
    pixels = files.open_stored(str(dataset.pixels.name), dataset.pixels_sha256, mapped_images)
    for start in range(0, len(pixels), BATCH_IMAGES):
        yield pixels[start : start + BATCH_IMAGES]


BATCH_ROWS = 8192


def batches(dataset: Dataset) -> Iterator[Any]:
    project = dataset.project
    if project.data_kind == DataKind.IMAGE:
        yield from pixel_batches(dataset)
    elif holds_gate_output(dataset):
        yield from _chunks(_passed(dataset).iterator(chunk_size=BATCH_ROWS))
    elif project.data_kind == DataKind.TEXT:
        yield from _chunks(_in_row_order(dataset, "text", blank=""))
    else:
        yield from _chunks(_in_row_order(dataset, "payload", blank=_blank(project)))


def sent_batches(dataset: Dataset, *, first: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Yield texts, or rows of a table as JSON, of some rows of an upload, as an engine takes them."""
    project, some = dataset.project, range(first, stop)
    values: Iterator[Any]
    if holds_gate_output(dataset):
        values = _passed(dataset)[first:stop].iterator(chunk_size=BATCH_ROWS)
    elif project.data_kind == DataKind.TEXT:
        values = _in_row_order(dataset, "text", blank="", some=some)
    else:
        as_json = Cast("payload", TextField())
        values = _in_row_order(dataset, as_json, blank=json.dumps(_blank(project)), some=some)
    yield from map(values_batch, _chunks(values))


def row_count(dataset: Dataset) -> int:
    return _passed(dataset).count() if holds_gate_output(dataset) else dataset.row_count


def holds_gate_output(dataset: Dataset) -> bool:
    """Say whether what the features are made of passed a gate."""
    return dataset.project.oracle == Oracle.CROWD and dataset.role == DatasetRole.POOL


def _passed(dataset: Dataset) -> QuerySet[Query, str | None]:
    return Query.objects.filter(gate_run__dataset=dataset).order_by("id").values_list("text", flat=True)


def _in_row_order(dataset: Dataset, field: str | Cast, *, blank: Any, some: range | None = None) -> Iterator[Any]:
    wanted, first = Record.objects.filter(dataset=dataset), 0
    if some is not None:
        wanted, first = wanted.filter(row_number__gte=some.start, row_number__lt=some.stop), some.start
    rows = wanted.order_by("row_number").values_list("row_number", field, "emptied")
    for expected, (row_number, value, emptied) in enumerate(rows.iterator(chunk_size=BATCH_ROWS), start=first):
        if row_number != expected:
            raise ArtifactCorrupt(f"dataset {dataset.pk} has no record for row {expected}")
        yield blank if emptied else value


def _blank(project: Project) -> dict[str, Any]:
    return {
        column["name"]: column["categories"][0] if "categories" in column else column.get("low", 0)
        for column in project.columns
    }


def _chunks(values: Iterator[Any]) -> Iterator[list[Any]]:
    while chunk := list(islice(values, BATCH_ROWS)):
        yield chunk


# One process makes so many in some seconds; keeping fewer costs more than it saves.
PART_BATCHES = 32
# More would wait for the one that reads the rows, and take memory.
MOST_PROCESSES = 8
# Whoever has kept nothing for so long is dead: a range takes minutes at most.
FORGOTTEN_AFTER = timedelta(hours=12)
FOLDER = "parts"
# Engines of add-ons for a featuriser, given the one of this host for what they do not do; the first offered is taken.
BATCH_ENGINES: list[Callable[[Featurizer, BatchEngine], BatchEngine | None]] = []


def is_made_in_parts(dataset: Dataset) -> bool:
    """Say whether an upload is large enough, and of a kind, to be cut."""
    return dataset.project.data_kind != DataKind.IMAGE and row_count(dataset) >= 2 * _part_rows()


def features_engine(featurizer: Featurizer) -> BatchEngine:
    crew = Crew(min(MOST_PROCESSES, len(os.sched_getaffinity(0))))
    return next(filter(None, (offered(featurizer, crew) for offered in BATCH_ENGINES)), crew)


def transformed(
    dataset: Dataset, featurizer: Featurizer, tell: TellParts = silent, *, emptied: int = 0
) -> Iterator[NDArray[np.float32]]:
    """Yield the features of all rows in their order, shape (n, dimension), whoever made them; `tell` hears of parts.

    `emptied` is how many records were emptied so far: parts that were made before one was are of no more use.
    """
    if not is_made_in_parts(dataset):
        yield from map(featurizer.transform, batches(dataset))
        return
    folder, step = _folder_of(dataset, featurizer.version, emptied), _part_rows()
    count = row_count(dataset)
    ranges = [range(start, min(start + step, count)) for start in range(0, count, step)]
    names = [f"{folder}/{number}.npy" for number in range(len(ranges))]
    missing = [not files.exists(name) for name in names]
    # The engine begins with the next range while one is kept.
    rows = (
        sent_batches(dataset, first=part.start, stop=part.stop)
        for part, is_missing in zip(ranges, missing, strict=True)
        if is_missing
    )
    try:
        with closing(features_engine(featurizer).made(features_step(featurizer), chain.from_iterable(rows))) as made:
            for number, (part, name) in enumerate(zip(ranges, names, strict=True)):
                tell(number, len(ranges))
                if missing[number]:
                    yield from _kept(name, made, len(part), featurizer.dimension)
                else:
                    yield from _stored(name, len(part), featurizer.dimension)
    except LookupError:
        # What is not whole helps nobody who comes later.
        files.delete_folder(folder)
        raise


def forget_feature_parts(dataset: Dataset, version: str, emptied: int) -> None:
    """Delete the parts of a feature file that is stored."""
    files.delete_folder(_folder_of(dataset, version, emptied))


def forget_parts_before(dataset: Dataset, emptied: int) -> None:
    for folder in _kept_folders(f"{_folder_of_all(dataset)}/{dataset.pk}"):
        before, _, _ = folder.rpartition("/")[2].partition("-")
        if int(before) < emptied:
            files.delete_folder(folder)


def forget_abandoned() -> int:
    forgotten = 0
    for folder, newest in _kept_folders("features").items():
        if timezone.now() - newest > FORGOTTEN_AFTER:
            forgotten += len(list(files.names_in(folder)))
            files.delete_folder(folder)
    return forgotten


def _part_rows() -> int:
    return PART_BATCHES * BATCH_ROWS


def _folder_of_all(dataset: Dataset) -> str:
    return f"features/{dataset.project_id}/{FOLDER}"


def _folder_of(dataset: Dataset, version: str, emptied: int) -> str:
    made_of = f"{emptied}-{version}-{row_count(dataset)}-{_part_rows()}"
    return f"{_folder_of_all(dataset)}/{dataset.pk}/{made_of}"


def _kept(name: str, made: Iterator[pa.RecordBatch], count: int, dimension: int) -> Iterator[NDArray[np.float32]]:
    batches = -(-count // BATCH_ROWS)
    with files.written_file(name) as path, MatrixWriter(path, dimension=dimension) as writer:
        for batch in islice(made, batches):
            rows = vectors_in(batch, dimension)
            writer.append(rows)
            yield rows
        if writer.rows != count:
            raise LookupError("rows of the features are gone")


def _stored(name: str, count: int, dimension: int) -> Iterator[NDArray[np.float32]]:
    read = 0
    with default_storage.open(name) as file:
        file.read(HEADER_BYTES)
        while content := file.read(BATCH_ROWS * dimension * 4):
            rows = np.frombuffer(content, dtype="<f4").reshape(-1, dimension)
            read += len(rows)
            yield rows
    if read != count:
        raise LookupError("rows of the features are gone")


def _kept_folders(below: str) -> dict[str, datetime]:
    found: dict[str, datetime] = {}
    for name in files.names_in(below):
        folder, _, _ = name.rpartition("/")
        if f"/{FOLDER}/" in name:
            try:
                made = default_storage.get_modified_time(name)
            except FileNotFoundError:
                continue
            found[folder] = max(made, found.get(folder, made))
    return found


# A row that is read maps what the system keeps of the file in one piece, up to 2 MiB: so many take 16 MiB at most.


class StackedMatrix:
    """Several feature files read as one matrix: row numbers run on from file to file."""

    def __init__(self, parts: Sequence[NDArray[np.float32]], *, dimension: int) -> None:
        self.parts = parts
        self._starts = np.cumsum([0, *(len(part) for part in parts)])
        self.shape = (int(self._starts[-1]), dimension)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> NDArray[np.float32]:
        rows = _listed(rows, len(self))
        found = np.empty((len(rows), self.shape[1]), dtype=np.float32)
        for start, end, part in zip(self._starts, self._starts[1:], self.parts, strict=False):
            inside = (rows >= start) & (rows < end)
            found[inside] = part[rows[inside] - start]
        return found


def _listed(rows: slice | NDArray[np.int64], count: int) -> NDArray[np.int64]:
    return np.arange(*rows.indices(count)) if isinstance(rows, slice) else rows


def let_go_of_files(X: NDArray[np.float32]) -> None:
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


def ensure_matrix(dataset: Dataset, tell: TellParts = silent) -> FeatureMatrix:
    featurizer = featurizer_of(dataset.project)
    stored = FeatureMatrix.objects.filter(dataset=dataset, version=featurizer.version).first()
    if stored is not None and files.exists(str(stored.file.name)):
        return stored
    # Before the rows are read: what is emptied while they are is zeroed afterwards, by `zero_emptied`.
    empty = empty_slots(dataset)
    name = _name_of(dataset, featurizer.version, len(empty))
    batches = zeroed(transformed(dataset, featurizer, tell, emptied=len(empty)), empty)
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
    forget_feature_parts(dataset, featurizer.version, len(empty))
    return stored


def _name_of(dataset: Dataset, version: str, emptied: int) -> str:
    return f"features/{dataset.project_id}/{dataset.pk}-{version}{f'-{emptied}' if emptied else ''}.npy"


def empty_slots(dataset: Dataset) -> NDArray[np.int64]:
    """Return the rows of a feature file that belong to empty slots, ascending; a gate's output has none."""
    return np.empty(0, dtype=np.int64) if holds_gate_output(dataset) else emptied_rows(dataset)


def zero_emptied(dataset: Dataset) -> int:
    """Give every feature file of an upload whose empty slots are not all zero a new one; return how many did.

    The old file is overwritten where those rows lie before it goes, since a worker may hold it open.
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
    forget_parts_before(dataset, len(empty_slots(dataset)))
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
