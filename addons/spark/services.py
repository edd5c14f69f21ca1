"""Engines of a cluster for uploads and features, where the site names one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.storage import default_storage

from addons.spark.batches import SparkBatches
from addons.spark.engine import SparkEngine
from addons.spark.jobs import FileReader
from addons.spark.stores import Bucket, Folder, columns_in
from addons.spark.tables import bucket_reader, folder_reader
from annotation.data.readers.registered import TableFile, cut_by_groups
from annotation.data.services.pool_files import files_of
from annotation.data.services.pseudonyms import table_key
from annotation.data.services.registered import checked_address, table_columns
from annotation.models import Dataset, PoolSource
from learner.features.base import Featurizer
from learner.features.batches import BatchEngine
from privacy.gate.engine import GateEngine


def gate_engine(dataset: Dataset, files: Sequence[TableFile] | None) -> GateEngine | None:
    if not settings.SPARK_MASTER or not dataset.in_columns:
        return None
    if files is None:
        return SparkEngine(settings.SPARK_MASTER, columns_in(shared_store()))
    (first, *_) = files_of(dataset)
    reader = shared_table(dataset.source)
    return SparkEngine(settings.SPARK_MASTER, reader, look_at=first, cut=cut_by_groups(files))


def batch_engine(featurizer: Featurizer, host: BatchEngine) -> BatchEngine | None:
    return SparkBatches(settings.SPARK_MASTER, host) if settings.SPARK_MASTER and featurizer.worth_a_cluster else None


def shared_store() -> Folder | Bucket:
    """Return where executors find the site's own files, without the site's key to it."""
    stored: Any = default_storage
    return _bucket(stored.bucket_name, stored.location) if hasattr(stored, "bucket_name") else Folder(stored.location)


def shared_table(source: PoolSource) -> FileReader:
    """Return what executors read a registered table by; its key makes pseudonyms of this registration alone."""
    address, root = checked_address(source.address, slug=source.dataset.project.slug)
    columns, key = table_columns(source), table_key(bytes(source.secret))
    if address.scheme == "file":
        return folder_reader(Path(address.path), Path(root.path), columns, key=key)
    return bucket_reader(_bucket(address.bucket, address.path), columns, key=key)


def _bucket(name: str, prefix: str) -> Bucket:
    stored: Any = default_storage
    style = stored.client_config.s3["addressing_style"]
    return Bucket(name, prefix, stored.endpoint_url, stored.region_name, style)
