import random

import pyarrow as pa
import pytest

from addons.spark.batches import batch_made
from addons.spark.steps import StepFailed, Steps
from addons.spark.stores import Folder, columns_in
from learner.features.batches import BatchStep, batch_bytes, batch_of
from privacy.gate.engine import wants_contributors
from tests.pure.learner.features.test_crew import DOUBLE
from tests.pure.learner.features.test_crew import numbers as batch_of_numbers
from tests.pure.privacy.test_gate_engine import GATES, KEY, counted, in_files, pool


def in_folder(folder, rows, sizes):
    files, contents = in_files(rows, sizes)
    for file, content in zip(files, contents, strict=True):
        (folder / file.name).write_bytes(content)
    return files, contents


def numbers(count):
    return iter([pa.record_batch([pa.array(range(count), pa.int64())], names=["id"])])


def by_share(table, order):
    rows = order.sample(range(table.num_rows), table.num_rows)
    mixed = table.take(pa.array(rows, pa.int64()))
    return [mixed.filter(pa.compute.equal(mixed["share"], share)) for share in set(mixed["share"].to_pylist())]


def run(steps, order):
    rows = pa.Table.from_batches(list(steps.digest(numbers(len(steps.files)))))
    if wants_contributors(steps.gate):
        rows = pa.concat_tables([steps.cap(share) for share in by_share(rows, order)])
    return rows, pa.concat_tables([steps.count(share) for share in by_share(rows, order)])


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize(("sizes", "shares"), [((), 1), ((300, 300), 3), ((17, 400, 1, 30), 8)])
def test_neither_files_nor_shares_nor_the_order_of_rows_change_a_count(tmp_path, name, sizes, shares):
    gate = GATES[name]
    files, contents = in_folder(tmp_path, pool(), sizes)
    expected = counted(gate, files, contents)
    steps = Steps(gate, files, columns_in(Folder(str(tmp_path))), KEY, shares)
    texts, found = run(steps, random.Random(shares))
    assert found.cast(gate.counts_schema).sort_by("text").equals(expected)
    # A text has one share, and there is more than one share to have.
    homes = set(zip(texts["text"].to_pylist(), texts["share"].to_pylist(), strict=True))
    assert len(homes) == len({text for text, _ in homes})
    assert shares == 1 or len({share for _, share in homes}) > shares // 2


def test_an_error_is_told_by_its_class_and_quotes_nothing(tmp_path):
    files, _ = in_folder(tmp_path, [("a secret text", None)] * 5, ())
    failing = Steps(GATES["k-anonymity, contributors"], files, columns_in(Folder(str(tmp_path))), KEY, 2)
    with pytest.raises(StepFailed, match="step failed with ValueError") as told:
        list(failing.digest(numbers(1)))
    assert told.value.__suppress_context__
    (tmp_path / files[0].name).write_bytes(b"something else")
    with pytest.raises(StepFailed, match="step failed with PoolDamaged"):
        list(failing.digest(numbers(1)))
    (tmp_path / files[0].name).unlink()
    with pytest.raises(StepFailed, match="step failed with FileNotFoundError"):
        list(failing.digest(numbers(1)))
    for step in (failing.cap, failing.count):
        with pytest.raises(StepFailed, match=r"step failed with \w+$"):
            step(pa.table({"text": ["a secret text"]}))


def test_a_batch_is_made_as_it_is_sent_and_an_error_is_named_by_its_class():
    sent = bytes(batch_bytes(batch_of_numbers(1, 2)))
    assert batch_of(batch_made(DOUBLE, sent)).equals(batch_of_numbers(2, 4))
    with pytest.raises(StepFailed, match=r"step failed with ValueError$") as failed:
        batch_made(BatchStep(DOUBLE.function, "words of a row"), sent)
    assert failed.value.__suppress_context__
