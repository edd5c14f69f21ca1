"""The features of a large upload made by many workers: ranges of its rows, put together in their order.

Whoever needs the feature file makes parts as well, and others help as they are free. Rows are taken in the batches that
one worker would take, and a row's features depend on that row alone, so the file has the same bytes whoever made it.

Parts are named after what they are parts of. So whoever takes the work over, after a crash, a full disk or a limit of
time, goes on with the parts that were made; what nobody takes over is swept away.
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
# Whoever has put nothing together for so long is dead, for whoever lives says so more often.
FORGOTTEN_AFTER = timedelta(hours=12)
WANTED_EVERY_SECONDS = 600.0
PARTS_OF = uuid.UUID("6f4c7e0a-4c35-4f0e-9f5c-0a8f1c1f2b57")


def is_made_in_parts(dataset: Dataset) -> bool:
    """Say whether an upload is large enough, and of a kind, to be cut."""
    divisible = dataset.project.data_kind != DataKind.IMAGE and not feature_rows.holds_gate_output(dataset)
    return divisible and dataset.row_count >= 2 * PART_BATCHES * feature_rows.BATCH_ROWS


def transformed(
    dataset: Dataset, featurizer: Featurizer, tell: Tell = silent, *, emptied: int = 0
) -> Iterator[NDArray[np.float32]]:
    """Yield the features of all rows in their order, shape (n, dimension), whoever made them; `tell` hears of parts.

    `emptied` is how many records were emptied so far: parts that were made before one was are of no more use. Once the
    file is stored, `forget_parts` is called with the same arguments.
    """
    if not is_made_in_parts(dataset):
        yield from map(featurizer.transform, feature_rows.batches(dataset))
        return
    parts = _open_parts(dataset, featurizer.version, emptied)
    build, count = parts[0].build, len(parts)
    wanted = FeaturePart.objects.filter(build=build)
    said = time.monotonic()
    try:
        while left := wanted.filter(done=False).count():
            tell(count - left, count)
            if not make_part(build=build):
                time.sleep(LOOK_AGAIN_SECONDS)
            if time.monotonic() - said > WANTED_EVERY_SECONDS:
                _still_wanted(build)
                said = time.monotonic()
        if wanted.count() != count:
            raise LookupError("parts of the features are gone")
        for part in wanted.order_by("number"):
            yield from _stored_rows(part, featurizer.dimension)
    except LookupError:
        # What is not whole helps nobody who comes later.
        _forget(wanted)
        raise


def forget_feature_parts(dataset: Dataset, version: str, emptied: int) -> None:
    """Delete the parts of a feature file that is stored."""
    _forget(FeaturePart.objects.filter(build=_build_of(dataset, version, emptied)))


def _build_of(dataset: Dataset, version: str, emptied: int) -> uuid.UUID:
    step = PART_BATCHES * feature_rows.BATCH_ROWS
    return uuid.uuid5(PARTS_OF, f"{dataset.pk} {version} {dataset.row_count} {emptied} {step}")


def _open_parts(dataset: Dataset, version: str, emptied: int) -> list[FeaturePart]:
    """Return the parts of a feature file, those included that somebody made before, and call for help with the rest."""
    step = PART_BATCHES * feature_rows.BATCH_ROWS
    build = _build_of(dataset, version, emptied)
    starts = range(0, dataset.row_count, step)
    for part in FeaturePart.objects.filter(build=build, done=True).select_related("dataset"):
        if not default_storage.exists(_name_of(part)):
            FeaturePart.objects.filter(pk=part.pk).update(done=False)
    parts = [
        FeaturePart(
            build=build,
            dataset=dataset,
            version=version,
            number=number,
            first_row=start,
            stop_row=min(start + step, dataset.row_count),
        )
        for number, start in enumerate(starts)
    ]
    with transaction.atomic():
        # Another holder's, dead or alive, stay as they are.
        FeaturePart.objects.bulk_create(parts, ignore_conflicts=True)
        _still_wanted(build)
        free = FeaturePart.objects.filter(build=build, done=False).count()
        helping = current_app.signature(MAKE_TASK, kwargs={"build": str(build)})
        for _ in range(min(MOST_HELPERS, free - 1)):
            transaction.on_commit(helping.apply_async, robust=True)
    return parts


def _still_wanted(build: uuid.UUID) -> None:
    """Keep parts from being swept away; those that somebody makes at this moment are looked at the next time."""
    with transaction.atomic():
        parts = FeaturePart.objects.filter(build=build).select_for_update(skip_locked=True)
        FeaturePart.objects.filter(pk__in=list(parts.values_list("pk", flat=True))).update(created_at=Now())


def make_part(*, build: uuid.UUID | str) -> bool:
    """Make a part that nobody holds; false where none is left."""
    with transaction.atomic():
        # The lock lasts while the features are made, and ends with its worker.
        free = FeaturePart.objects.filter(build=build, done=False).order_by("number")
        part = free.select_for_update(of=("self",), skip_locked=True).select_related("dataset__project").first()
        if part is None:
            return False
        featurizer = featurizer_of(part.dataset.project)
        if featurizer.version != part.version:
            raise LookupError("the features were changed while they were made")
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
