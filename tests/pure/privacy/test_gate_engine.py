import hashlib
import io
import random

import pyarrow as pa
import pytest

from privacy.errors import PoolDamaged
from privacy.gate.columns import ColumnsWriter, pool_rows, read_columns
from privacy.gate.counting import ordered
from privacy.gate.engine import PoolFile, ProcessEngine
from privacy.gate.kanonymity import KAnonymityGate, ThresholdGate
from privacy.mechanisms.randomness import SimulationRandom

KEY = bytes(range(32))
GATES = {
    "k-anonymity, records": KAnonymityGate(3, 0.7),
    "k-anonymity, contributors": KAnonymityGate(3, 0.7, "contributor", 2),
    "threshold, records": ThresholdGate(1.0, 0.2, floor=3),
    "threshold, contributors": ThresholdGate(1.0, 0.2, "contributor", 2, floor=2),
    "threshold, contributors by text": ThresholdGate(1.0, 0.2, "contributor", 2, noise="truncated_geometric"),
}


def pool(rows=900, seed=4):
    choice = random.Random(seed)
    texts = [choice.choice([None, "Play", "play!", f"text {int(choice.paretovariate(0.6))}"]) for _ in range(rows)]
    return [(text, None if text is None else choice.randrange(120).to_bytes(16)) for text in texts]


def in_files(rows, sizes):
    files, contents, first = [], [], 0
    for number, size in enumerate([*sizes, len(rows)]):
        part = rows[first : first + size]
        target = io.BytesIO()
        writer = ColumnsWriter(target)
        writer.write(pool_rows([text for text, _ in part], [who for _, who in part]))
        writer.close()
        contents.append(target.getvalue())
        sha256 = hashlib.sha256(contents[-1]).hexdigest()
        files.append(PoolFile(number, f"{number}.parquet", sha256, first, len(part)))
        first += len(part)
    return files, contents


def reader_of(contents):
    return lambda file, named: read_columns(contents[file.number], file.sha256, contributors=named)


def counted(gate, files, contents, told=None, **options):
    engine = ProcessEngine(reader_of(contents), **options)
    found = engine.counted(gate, files, key=KEY, tell=(told.append if told is not None else lambda read: None))
    return pa.concat_tables([gate.counts_schema.empty_table(), *ordered(found)])


def concluded(gate, table):
    return gate.conclude([table], rng=SimulationRandom(3))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("sizes", [(), (1,), (300, 300), (17, 400, 1, 30)])
@pytest.mark.parametrize("memory_bytes", [2**27, 2**10])
def test_neither_files_nor_memory_change_a_count(name, sizes, memory_bytes):
    gate, rows = GATES[name], pool()
    batch = pa.record_batch(
        [[text for text, _ in rows], [who or bytes(16) for _, who in rows]], names=["text", "contributor"]
    )
    whole = pa.concat_tables(
        [
            gate.counts_schema.empty_table(),
            *ordered(gate.counted(gate.texts(gate.read([batch], key=KEY), key=KEY), key=KEY)),
        ]
    )
    found = counted(gate, *in_files(rows, sizes), memory_bytes=memory_bytes)
    assert found.equals(whole)
    assert 2 < found.num_rows < len({text for text, _ in rows})
    assert concluded(gate, found).equals(concluded(gate, whole))


def test_rows_are_told_as_they_are_read_and_whoever_is_told_can_stop_it():
    files, contents = in_files(pool(), (300, 300))
    told = []
    counted(GATES["threshold, records"], files, contents, told)
    assert told == [300, 600, 900]

    class Stopped(Exception):
        """What whoever listens raises."""

    def stop(read):
        raise Stopped

    engine = ProcessEngine(reader_of(contents))
    with pytest.raises(Stopped):
        engine.counted(GATES["threshold, records"], files, key=KEY, tell=stop)


def test_a_damaged_file_ends_it():
    files, contents = in_files(pool(), (300, 300))
    contents[1] = contents[1][:-1] + b"\0"
    with pytest.raises(PoolDamaged):
        counted(GATES["k-anonymity, records"], files, contents)
