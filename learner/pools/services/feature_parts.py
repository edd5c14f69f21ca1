"""Features of a large upload, or of what a gate let out, made by an engine and kept range by range until put together.

Ranges begin at multiples of the batches that one process would take, and a row's features depend on that row alone, so
the file has the same bytes whoever made it. A kept range is a file whose name says what it is a part of. So whoever
takes the work over, after a crash, a full disk or a limit of time, makes what is missing; what nobody takes over is
swept away.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from itertools import chain, islice

import numpy as np
import pyarrow as pa
from django.conf import settings
from django.core.files.storage import default_storage
from django.utils import timezone
from numpy.typing import NDArray

from annotation.files import services as files
from annotation.models import DataKind, Dataset
from learner.features.base import Featurizer
from learner.features.batches import features_step, vectors_in
from learner.features.matrix import HEADER_BYTES, MatrixWriter
from learner.pools.services import feature_rows
from learner.work.services.progress import TellParts, silent
from privacy.engines.batches import BatchEngine
from privacy.engines.crew import Crew
from privacy.engines.spark_batches import SparkBatches

# One process makes so many in some seconds; keeping fewer costs more than it saves.
PART_BATCHES = 32
# More would wait for the one that reads the rows, and take memory.
MOST_PROCESSES = 8
# Whoever has kept nothing for so long is dead: a range takes minutes at most.
FORGOTTEN_AFTER = timedelta(hours=12)
FOLDER = "parts"


def is_made_in_parts(dataset: Dataset) -> bool:
    """Say whether an upload is large enough, and of a kind, to be cut."""
    return dataset.project.data_kind != DataKind.IMAGE and feature_rows.row_count(dataset) >= 2 * _part_rows()


def features_engine(featurizer: Featurizer) -> BatchEngine:
    """Return what makes the features of large uploads: a cluster where the site has one and a row takes its time."""
    crew = Crew(min(MOST_PROCESSES, len(os.sched_getaffinity(0))))
    if settings.SPARK_MASTER and featurizer.worth_a_cluster:
        return SparkBatches(settings.SPARK_MASTER, crew)
    return crew


def transformed(
    dataset: Dataset, featurizer: Featurizer, tell: TellParts = silent, *, emptied: int = 0
) -> Iterator[NDArray[np.float32]]:
    """Yield the features of all rows in their order, shape (n, dimension), whoever made them; `tell` hears of parts.

    `emptied` is how many records were emptied so far: parts that were made before one was are of no more use. Once the
    file is stored, `forget_feature_parts` is called with the same arguments.
    """
    if not is_made_in_parts(dataset):
        yield from map(featurizer.transform, feature_rows.batches(dataset))
        return
    folder, step = _folder_of(dataset, featurizer.version, emptied), _part_rows()
    count = feature_rows.row_count(dataset)
    ranges = [range(start, min(start + step, count)) for start in range(0, count, step)]
    names = [f"{folder}/{number}.npy" for number in range(len(ranges))]
    missing = [not files.exists(name) for name in names]
    # The engine begins with the next range while one is kept.
    rows = (
        feature_rows.sent_batches(dataset, first=part.start, stop=part.stop)
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
    """Delete the parts that were made of an upload before so many of its records were empty."""
    for folder in _kept_folders(f"{_folder_of_all(dataset)}/{dataset.pk}"):
        before, _, _ = folder.rpartition("/")[2].partition("-")
        if int(before) < emptied:
            files.delete_folder(folder)


def forget_abandoned() -> int:
    """Delete parts nobody will put together any more; return how many those were."""
    forgotten = 0
    for folder, newest in _kept_folders("features").items():
        if timezone.now() - newest > FORGOTTEN_AFTER:
            forgotten += len(list(files.names_in(folder)))
            files.delete_folder(folder)
    return forgotten


def _part_rows() -> int:
    return PART_BATCHES * feature_rows.BATCH_ROWS


def _folder_of_all(dataset: Dataset) -> str:
    return f"features/{dataset.project_id}/{FOLDER}"


def _folder_of(dataset: Dataset, version: str, emptied: int) -> str:
    """Return where parts are kept, which says all that their rows follow from."""
    made_of = f"{emptied}-{version}-{feature_rows.row_count(dataset)}-{_part_rows()}"
    return f"{_folder_of_all(dataset)}/{dataset.pk}/{made_of}"


def _kept(name: str, made: Iterator[pa.RecordBatch], count: int, dimension: int) -> Iterator[NDArray[np.float32]]:
    """Yield so many rows of what an engine makes, and keep them as a part."""
    batches = -(-count // feature_rows.BATCH_ROWS)
    with files.written_file(name) as path, MatrixWriter(path, dimension=dimension) as writer:
        for batch in islice(made, batches):
            rows = vectors_in(batch, dimension)
            writer.append(rows)
            yield rows
        if writer.rows != count:
            raise LookupError("rows of the features are gone")


def _stored(name: str, count: int, dimension: int) -> Iterator[NDArray[np.float32]]:
    """Yield the rows of a part that was kept."""
    read = 0
    with default_storage.open(name) as file:
        file.read(HEADER_BYTES)
        while content := file.read(feature_rows.BATCH_ROWS * dimension * 4):
            rows = np.frombuffer(content, dtype="<f4").reshape(-1, dimension)
            read += len(rows)
            yield rows
    if read != count:
        raise LookupError("rows of the features are gone")


def _kept_folders(below: str) -> dict[str, datetime]:
    """Return the folders of parts below one, and when the newest of each was made."""
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
