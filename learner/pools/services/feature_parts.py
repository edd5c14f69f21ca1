"""The features of a large upload made by many workers: ranges of its rows, put together in their order.

Whoever needs the feature file makes parts as well, and others help as they are free. Rows are taken in the batches that
one worker would take, and a row's features depend on that row alone, so the file has the same bytes whoever made it.
"""

import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from tempfile import TemporaryFile
from typing import Any, cast

import numpy as np
from celery import current_app
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import models, transaction
from django.db.models.functions import Now
from numpy.typing import NDArray

from annotation.models import DataKind, Dataset
from learner.configuration.pool import featurizer_of
from learner.features.base import Featurizer
from learner.models.parts import FeaturePart
from learner.pools.services import feature_rows
from learner.work.services.progress import Tell, silent

# One process makes so many in some seconds; handing fewer around costs more than it saves.
PART_BATCHES = 32
LOOK_AGAIN_SECONDS = 0.1
MAKE_TASK = "learner.tasks.make_feature_part_task"
MOST_HELPERS = 64
# Whoever has put nothing together for so long is dead.
FORGOTTEN_AFTER = timedelta(hours=12)


def is_made_in_parts(dataset: Dataset) -> bool:
    """Say whether an upload is large enough, and of a kind, to be cut."""
    divisible = dataset.project.data_kind != DataKind.IMAGE and not feature_rows.holds_gate_output(dataset)
    return divisible and dataset.row_count >= 2 * PART_BATCHES * feature_rows.BATCH_ROWS


def transformed(dataset: Dataset, featurizer: Featurizer, tell: Tell = silent) -> Iterator[NDArray[np.float32]]:
    """Yield the features of all rows in their order, shape (n, dimension), whoever made them; `tell` hears of parts."""
    if not is_made_in_parts(dataset):
        yield from map(featurizer.transform, feature_rows.batches(dataset))
        return
    step = PART_BATCHES * feature_rows.BATCH_ROWS
    build = uuid.uuid4()
    starts = range(0, dataset.row_count, step)
    with transaction.atomic():
        FeaturePart.objects.bulk_create(
            FeaturePart(
                build=build,
                dataset=dataset,
                number=number,
                first_row=start,
                stop_row=min(start + step, dataset.row_count),
            )
            for number, start in enumerate(starts)
        )
        helping = current_app.signature(MAKE_TASK, kwargs={"build": str(build)})
        for _ in range(min(MOST_HELPERS, len(starts) - 1)):
            transaction.on_commit(helping.apply_async, robust=True)
    parts = FeaturePart.objects.filter(build=build)
    try:
        while left := parts.filter(done=False).count():
            tell(len(starts) - left, len(starts))
            if not make_part(build=build):
                time.sleep(LOOK_AGAIN_SECONDS)
        if parts.count() != len(starts):
            raise LookupError("parts of the features are gone")
        for part in parts.order_by("number"):
            yield from _stored_rows(part, featurizer.dimension)
    finally:
        _forget(parts)


def make_part(*, build: uuid.UUID | str) -> bool:
    """Make a part that nobody holds; false where none is left."""
    with transaction.atomic():
        # The lock lasts while the features are made, and ends with its worker.
        free = FeaturePart.objects.filter(build=build, done=False).order_by("number")
        part = free.select_for_update(of=("self",), skip_locked=True).select_related("dataset__project").first()
        if part is None:
            return False
        featurizer = featurizer_of(part.dataset.project)
        with TemporaryFile() as spool:
            for batch in feature_rows.batches(part.dataset, first=part.first_row, stop=part.stop_row):
                spool.write(np.ascontiguousarray(featurizer.transform(batch), dtype="<f4").data)
            spool.seek(0)
            # An attempt that died may have left a file of this name.
            default_storage.delete(_name_of(part))
            default_storage.save(_name_of(part), File(spool))
        part.done = True
        part.save(update_fields=["done"])
    return True


def help_making(*, build: uuid.UUID | str) -> None:
    """Make parts until none is free."""
    while make_part(build=build):
        pass


def _stored_rows(part: FeaturePart, dimension: int) -> Iterator[NDArray[np.float32]]:
    batch_bytes = feature_rows.BATCH_ROWS * dimension * 4
    read = 0
    with default_storage.open(_name_of(part)) as file:
        while batch := file.read(batch_bytes):
            rows = np.frombuffer(batch, dtype="<f4").reshape(-1, dimension)
            read += len(rows)
            yield rows
    if read != part.stop_row - part.first_row:
        raise LookupError("rows of the features are gone")


def _name_of(part: FeaturePart) -> str:
    return f"features/{part.dataset.project_id}/parts/{part.name}"


def _forget(parts: "models.QuerySet[FeaturePart]") -> int:
    """Delete parts and their files; waits for whoever makes one at this moment."""
    names = [_name_of(part) for part in parts.select_related("dataset")]
    parts.delete()
    for name in names:
        default_storage.delete(name)
    return len(names)


def forget_abandoned() -> int:
    """Delete parts nobody will put together any more, and their files; return how many parts those were."""
    long_ago = models.ExpressionWrapper(Now() - FORGOTTEN_AFTER, output_field=models.DateTimeField())
    return _forget(FeaturePart.objects.filter(created_at__lt=cast(Any, long_ago)))
