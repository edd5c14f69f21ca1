"""Batches of records, checked, normalised and sampled."""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.gate.hashing import coins, secret_words
from privacy.gate.normalizers import Normalizer, normalize_texts

COUNTS: Final = pa.schema([("text", pa.large_string()), ("sample_count", pa.int64())])
PAIRS: Final = pa.schema(
    [
        ("text", pa.dictionary(pa.int32(), pa.large_string())),
        ("contributor", pa.dictionary(pa.int32(), pa.large_binary())),
        ("rank", pa.uint32()),
        ("shown", pa.bool_()),
    ]
)


def sampled_counts(
    batches: Iterable[pa.RecordBatch], normalizer: Normalizer, *, key: bytes, threshold: int, first_record: int = 0
) -> Iterator[pa.Table]:
    """Yield the texts of a sample of the records with their counts, batch by batch; texts may repeat."""
    position = first_record
    for batch in batches:
        texts = text_column(batch)
        shown = coins(key, first=position, count=len(texts), threshold=threshold)
        position += len(texts)
        # Sampling first leaves only the sample to hash and to normalise.
        yield _counted(texts.filter(pa.array(shown)), normalizer)


def all_counts(batches: Iterable[pa.RecordBatch], normalizer: Normalizer) -> Iterator[pa.Table]:
    """Yield the texts of all records with their counts, batch by batch; texts may repeat."""
    for batch in batches:
        yield _counted(text_column(batch), normalizer)


def pairs(
    batches: Iterable[pa.RecordBatch], normalizer: Normalizer, *, key: bytes, threshold: int, first_record: int = 0
) -> Iterator[pa.Table]:
    """Yield (text, contributor) with the rank and the coin of the record, batch by batch in record order."""
    position = first_record
    for batch in batches:
        texts, contributors = text_column(batch), contributor_column(batch)
        texts = texts if pa.types.is_dictionary(texts.type) else texts.dictionary_encode()
        # Different texts can have one normal form, so these are encoded once more.
        normal = normalize_texts(texts.dictionary, normalizer).dictionary_encode()
        texts = pa.DictionaryArray.from_arrays(normal.indices.take(texts.indices), normal.dictionary)
        ranks = secret_words(key, b"cap", first=position, count=len(texts))
        shown = coins(key, first=position, count=len(texts), threshold=threshold)
        position += len(texts)
        columns = [texts, contributors, pa.array(ranks), pa.array(shown)]
        empty = pc.index(normal.dictionary, "").as_py()
        named = pc.is_valid(texts.indices) if empty < 0 else pc.fill_null(pc.not_equal(texts.indices, empty), False)
        yield pa.Table.from_arrays(columns, schema=PAIRS).filter(named)


def check_unit(unit: str, texts_per_contributor: int | None) -> None:
    """Refuse a unit that is unknown, or a cap that is missing or has no meaning."""
    if unit not in ("record", "contributor"):
        raise ValueError(f"{'unit'} must be one of {'record, contributor'}, got {unit!r}")
    if unit == "record" and texts_per_contributor is not None:
        raise ValueError("texts_per_contributor has no meaning for the unit record")
    if unit == "contributor" and (texts_per_contributor is None or texts_per_contributor < 1):
        raise ValueError(f"unit contributor needs texts_per_contributor >= 1, got {texts_per_contributor}")


def text_column(batch: pa.RecordBatch) -> pa.Array:
    """Return the texts of a batch as large strings; `ValueError` without a quote if there is no UTF-8 column text."""
    if "text" not in batch.schema.names:
        raise ValueError("batches need a column text")
    column = batch.column("text")
    if not pa.types.is_dictionary(column.type):
        return _checked(column)
    return pa.DictionaryArray.from_arrays(column.indices, _checked(column.dictionary))


def _checked(texts: pa.Array) -> pa.Array:
    try:
        texts = texts.cast(pa.large_string())
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise ValueError("texts must be valid UTF-8") from None
    return texts


def contributor_column(batch: pa.RecordBatch) -> pa.DictionaryArray:
    """Return the contributors of a batch, dictionary-encoded; `ValueError` if a record has none."""
    if "contributor" not in batch.schema.names:
        raise ValueError("batches need a column contributor")
    contributors = batch.column("contributor")
    if contributors.null_count:
        raise ValueError(f"{contributors.null_count} records have no contributor to protect")
    return contributors.cast(pa.large_binary()).dictionary_encode()


def _counted(texts: pa.Array, normalizer: Normalizer) -> pa.Table:
    values, counts = _tallied(texts.drop_null())
    normal = normalize_texts(values, normalizer)
    return pa.table([normal, counts], schema=COUNTS).filter(pc.not_equal(normal, ""))


def _tallied(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    if not pa.types.is_dictionary(texts.type):
        tallied = pc.value_counts(texts)
        return tallied.field("values"), tallied.field("counts")
    counts = np.bincount(texts.indices.to_numpy(), minlength=len(texts.dictionary))
    said = np.flatnonzero(counts)
    return texts.dictionary.take(pa.array(said)), pa.array(counts[said])
