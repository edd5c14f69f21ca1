"""Contenders of `benchmarks/gate.py`: this project's sketches and gates, and installed peers."""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from _gate_data import BATCH_ROWS, CAP, RATE, K

from privacy.gate.cardinality import Cardinality
from privacy.gate.count_min import CountMinSketch
from privacy.gate.counting import CountingGate
from privacy.gate.hashing import coins, hash_texts
from privacy.gate.kanonymity import KAnonymityGate
from privacy.gate.normalizers import normalize_text
from privacy.gate.threshold import ThresholdGate

KEY = bytes(range(32))
RECORD_GATE = KAnonymityGate(K, RATE)
CONTRIBUTOR_GATE = KAnonymityGate(K, RATE, unit="contributor", texts_per_contributor=CAP)


class Stopwatch:
    """Processor and wall seconds of what is counted, without what makes the data."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0

    def __enter__(self) -> None:
        self.start = time.process_time(), time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self.cpu += time.process_time() - self.start[0]
        self.wall += time.perf_counter() - self.start[1]

    def paused(self, source: Iterator[Any]) -> Iterator[Any]:
        """Hand on items whose making is not timed, inside of a timed block."""
        while True:
            self.__exit__()
            item = next(source, None)
            self.__enter__()
            if item is None:
                return
            yield item


class Ours:
    def __init__(self) -> None:
        self.counts = CountMinSketch(2**20, 4)
        self.cardinality = Cardinality(14)

    def update(self, texts: pa.Array) -> None:
        tallied = pc.value_counts(texts)
        hashes = hash_texts(tallied.field("values"), key=KEY[:16])
        self.counts.update(hashes, tallied.field("counts").to_numpy())
        self.cardinality.update(hashes)

    def estimates(self, texts: list[str]) -> np.ndarray:
        return self.counts.estimate(hash_texts(pa.array(texts), key=KEY[:16]))


class Apache:
    """Apache DataSketches, one call for each text and sketch: it has no other."""

    def __init__(self) -> None:
        import datasketches

        self.counts = datasketches.count_min_sketch(4, 2**20)
        self.cardinality = datasketches.hll_sketch(14)

    def update(self, texts: list[str]) -> None:
        count, register = self.counts.update, self.cardinality.update
        for text in texts:
            count(text)
            register(text)

    def estimates(self, texts: list[str]) -> np.ndarray:
        return np.array([self.counts.get_estimate(text) for text in texts])


def run_sketches(make: Callable[[], Any], convert: Callable[[pa.Array], Any]) -> Callable:
    """Return a contender that feeds a sketch batch by batch and is then compared with the truth."""

    def run(batches: Iterator[pa.RecordBatch], watch: Stopwatch) -> dict[str, Any]:
        truth: Counter[str] = Counter()
        sketch = make()
        for batch in batches:
            with watch:
                sketch.update(convert(batch.column("text")))
            tallied = pc.value_counts(batch.column("text"))
            pairs = zip(tallied.field("values").to_pylist(), tallied.field("counts").to_pylist(), strict=True)
            truth.update(dict(pairs))
        texts, counts = list(truth), np.array(list(truth.values()))
        return {"under_the_truth": int((sketch.estimates(texts) < counts).sum())}

    return run


def run_gate(gate: CountingGate) -> Callable:
    """Return a whole gate, its exact recount included."""

    def run(batches: Iterator[pa.RecordBatch], watch: Stopwatch) -> dict[str, Any]:
        with watch:
            passed = gate.release(watch.paused(batches), key=KEY)
        return {"passed": passed.num_rows}

    return run


def run_checked_gate(batches: Iterator[pa.RecordBatch], watch: Stopwatch) -> dict[str, Any]:
    """Compare the gate with a Counter of the same sample."""
    first, second = itertools.tee(batches)
    with watch:
        passed = RECORD_GATE.release(watch.paused(first), key=KEY)
    counts: Counter[str] = Counter()
    for number, batch in enumerate(second):
        shown = coins(KEY, first=number * BATCH_ROWS, count=len(batch), threshold=int(RATE * 2**32))
        counts.update(batch.column("text").filter(pa.array(shown)).to_pylist())
    truth = {normalize_text(text, RECORD_GATE.normalizer): count for text, count in counts.items() if count >= K}
    ours = dict(zip(passed["text"].to_pylist(), passed["sample_count"].to_pylist(), strict=True))
    return {
        "passed": len(ours),
        "false_admits": len(ours.keys() - truth.keys()),
        "missed": len(truth.keys() - ours.keys()),
        "wrong_counts": sum(ours[text] != truth[text] for text in ours.keys() & truth.keys()),
    }


def run_apache_contributors(batches: Iterator[pa.RecordBatch], watch: Stopwatch) -> dict[str, Any]:
    """Count distinct contributors: pairs in a set, new ones into the count-min sketch."""
    sketch, seen = Apache(), set()
    for batch in batches:
        with watch:
            pairs = zip(batch.column("text").to_pylist(), batch.column("contributor").to_pylist(), strict=True)
            for pair in pairs:
                if pair not in seen:
                    seen.add(pair)
                    sketch.counts.update(pair[0])
    return {"pairs": len(seen)}


def run_duckdb(batches: Iterator[pa.RecordBatch], watch: Stopwatch) -> dict[str, Any]:
    import duckdb

    with watch:
        first = next(batches)
        source = pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], watch.paused(batches)))
        connection = duckdb.connect()
        connection.execute("SET threads = 2")
        query = f"SELECT count(*) FROM (SELECT text FROM source GROUP BY text HAVING count(*) >= {K})"
        passed = connection.execute(query).fetchone()
    assert source is not None
    return {"passed": passed[0]}


CONTENDERS: dict[str, Callable] = {
    "ours_sketch": run_sketches(Ours, lambda texts: texts),
    "apache_sketch": run_sketches(Apache, lambda texts: texts.to_pylist()),
    "record_gate": run_gate(RECORD_GATE),
    "contributor_gate": run_gate(CONTRIBUTOR_GATE),
    "threshold_gate": run_gate(ThresholdGate(1.0, 1e-6)),
    "apache_contributors": run_apache_contributors,
    "duckdb": run_duckdb,
    "checked_gate": run_checked_gate,
}
