"""Count 5 M short queries for the gate, beside Apache DataSketches, Counter, DuckDB and a Postgres GROUP BY.

Run: python benchmarks/gate.py [--rows N] [--repeats R] [--scale N ...]

Queries: Zipf 1.1 over 400,000 texts (about 300,000 turn up) of 24 characters on average, 200,000 contributors. Every
contender counts batches of 500,000 in a process of its own; making the data is not timed. Ratios are of processor
seconds, which other work on the machine disturbs least; wall seconds are printed beside them. Apache's sketches and
DuckDB take part if their packages are installed.

Limits: sketches (count-min 4 x 2**20 and HyperLogLog 14) at least 5 times Apache's from Arrow and 2.5 times from a
list; the contributor gate at least 1.2 times Apache's count-min behind a set of pairs; estimates never under the
truth; no text let out that an exact count would hold back; a row of 50 M at most 1.2 times a row of 10 M.
"""

import argparse
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.contributions.coins import coins
from privacy.gate import KAnonymityGate, ThresholdGate
from privacy.normalizers import normalize_text
from privacy.sketches.cardinality import Cardinality
from privacy.sketches.count_min import CountMinSketch
from privacy.sketches.hashing import hash_texts
from privacy.sketches.table import CountTable

VOCABULARY, PEOPLE, BATCH_ROWS, K, RATE, CAP = 400_000, 200_000, 500_000, 14, 0.25, 5
KEY = bytes(range(32))
ARROW_LIMIT, LIST_LIMIT, CONTRIBUTOR_LIMIT, LINEAR_LIMIT = 5, 2.5, 1.2, 1.2
RECORD_GATE = KAnonymityGate(K, RATE)
CONTRIBUTOR_GATE = KAnonymityGate(K, RATE, unit="contributor", texts_per_contributor=CAP)
WORDS = (
    "play",
    "stop",
    "next",
    "call",
    "mum",
    "set",
    "alarm",
    "timer",
    "what",
    "weather",
    "kitchen",
    "lights",
    "music",
)


class Data:
    """Batches that are the same for every contender."""

    def __init__(self, vocabulary: int) -> None:
        rng = np.random.default_rng(1)
        words = np.array(WORDS)[rng.integers(0, len(WORDS), size=(vocabulary, 3))]
        self.texts = pa.array([f"{' '.join(row)} {number:x}" for number, row in enumerate(words.tolist())])
        weights = np.arange(1, vocabulary + 1) ** -1.1
        self.edges = np.cumsum(weights / weights.sum())

    def batch(self, number: int) -> pa.RecordBatch:
        rng = np.random.default_rng([2, number])
        rows = np.minimum(np.searchsorted(self.edges, rng.random(BATCH_ROWS)), len(self.texts) - 1)
        people = pa.array(rng.integers(0, PEOPLE, size=BATCH_ROWS)).cast(pa.string())
        return pa.RecordBatch.from_arrays([self.texts.take(pa.array(rows)), people], names=["text", "contributor"])


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
    """The sketches of this project."""

    def __init__(self, *, exact: bool) -> None:
        self.counts = CountTable() if exact else CountMinSketch(2**20, 4)
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


def run_sketches(make: Callable[[], Any], convert: Callable[[pa.Array], Any], *, timed_conversion: bool) -> Callable:
    """Return a contender that feeds a sketch batch by batch and is then compared with the truth."""

    def run(batches: Iterator[pa.RecordBatch], watch: Stopwatch) -> dict[str, Any]:
        truth: Counter[str] = Counter()
        sketch = make()
        for batch in batches:
            texts = batch.column("text")
            if not timed_conversion:
                texts = convert(texts)
            with watch:
                sketch.update(convert(texts) if timed_conversion else texts)
            tallied = pc.value_counts(batch.column("text"))
            pairs = zip(tallied.field("values").to_pylist(), tallied.field("counts").to_pylist(), strict=True)
            truth.update(dict(pairs))
        texts, counts = list(truth), np.array(list(truth.values()))
        estimates = sketch.estimates(texts)
        return {
            "under_the_truth": int((estimates < counts).sum()),
            "false_admits_if_it_decided": int(((estimates >= K) & (counts < K)).sum()),
        }

    return run


def run_gate(gate: KAnonymityGate | ThresholdGate) -> Callable:
    """Return a whole gate, its exact recount included."""

    def run(batches: Iterator[pa.RecordBatch], watch: Stopwatch) -> dict[str, Any]:
        options = {"key": KEY} if isinstance(gate, KAnonymityGate) else {}
        with watch:
            passed = gate.release(watch.paused(batches), **options)
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


def run_counter(batches: Iterator[pa.RecordBatch], watch: Stopwatch) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    for batch in batches:
        with watch:
            counts.update(batch.column("text").to_pylist())
    return {"passed": sum(count >= K for count in counts.values())}


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
    "ours_sketch_arrow": run_sketches(lambda: Ours(exact=False), lambda texts: texts, timed_conversion=True),
    "apache_arrow": run_sketches(Apache, lambda texts: texts.to_pylist(), timed_conversion=True),
    "ours_table_arrow": run_sketches(lambda: Ours(exact=True), lambda texts: texts, timed_conversion=True),
    "apache_list": run_sketches(Apache, lambda texts: texts.to_pylist(), timed_conversion=False),
    "record_gate": run_gate(RECORD_GATE),
    "contributor_gate": run_gate(CONTRIBUTOR_GATE),
    "threshold_gate": run_gate(ThresholdGate(1.0, 1e-6)),
    "threshold_gate_contributors": run_gate(ThresholdGate(1.0, 1e-6, "contributor", CAP, floor=10)),
    "apache_contributors": run_apache_contributors,
    "counter": run_counter,
    "duckdb": run_duckdb,
    "checked_gate": run_checked_gate,
}


def run_ours_list(batches: Iterator[pa.RecordBatch], watch: Stopwatch) -> dict[str, Any]:
    """Take Python lists, as a caller without Arrow has them."""
    sketch = Ours(exact=False)
    for batch in batches:
        texts = batch.column("text").to_pylist()
        with watch:
            sketch.update(pa.array(texts, pa.string()))
    return {}


CONTENDERS["ours_sketch_list"] = run_ours_list


def resident_mib(field: str) -> float:
    """Return VmRSS or VmHWM of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {field}")


def run_here(name: str, rows: int, vocabulary: int) -> dict[str, Any]:
    """Run one contender in this process."""
    data, watch = Data(vocabulary), Stopwatch()
    batches = (data.batch(number) for number in range(rows // BATCH_ROWS))
    Path("/proc/self/clear_refs").write_text("5")
    before = resident_mib("VmRSS")
    found = CONTENDERS[name](batches, watch)
    return {
        "cpu_seconds": round(watch.cpu, 3),
        "wall_seconds": round(watch.wall, 3),
        "extra_mib": round(resident_mib("VmHWM") - before, 1),
        **found,
    }


def run_apart(name: str, rows: int, vocabulary: int = VOCABULARY) -> dict[str, Any]:
    """Run one contender in a process of its own."""
    command = [sys.executable, __file__, "--one", name, "--rows", str(rows), "--vocabulary", str(vocabulary)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def run_postgres(rows: int) -> dict[str, Any]:
    """COPY the texts into an embedded Postgres and group them there."""
    import psycopg

    from dpal_site.embedded.postgres import EmbeddedPostgres

    data = Data(VOCABULARY)
    with tempfile.TemporaryDirectory(prefix="dpal-gate-") as folder:
        Path(folder).chmod(0o711)
        postgres = EmbeddedPostgres(Path(folder) / "postgres", durable=False)
        postgres.start()
        try:
            with psycopg.connect(postgres.url(), autocommit=True) as connection:
                connection.execute("CREATE UNLOGGED TABLE query (text text)")
                copied = 0.0
                for number in range(rows // BATCH_ROWS):
                    block = "\n".join(data.batch(number).column("text").to_pylist())
                    start = time.perf_counter()
                    with connection.cursor().copy("COPY query FROM STDIN") as copy:
                        copy.write(block + "\n")
                    copied += time.perf_counter() - start
                start = time.perf_counter()
                query = "SELECT count(*) FROM (SELECT text FROM query GROUP BY text HAVING count(*) >= %s) passed"
                row = connection.execute(query, [K]).fetchone()
                grouped = time.perf_counter() - start
                plan = connection.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + query, [K]).fetchone()[0][0]["Plan"]
        finally:
            postgres.stop()
    memory, disk = plan_mib(plan, "Memory"), plan_mib(plan, "Disk")
    return {
        "copy_seconds": round(copied, 3),
        "group_seconds": round(grouped, 3),
        "group_memory_mib": round(memory, 1),
        "group_disk_mib": round(disk, 1),
        "passed": row[0],
    }


def plan_mib(node: dict[str, Any], kind: str) -> float:
    """Add up what sorting and hashing took, workers included, as the executed plan reports it."""
    hashed = {"Memory": "Peak Memory Usage", "Disk": "Disk Usage"}[kind]
    places = [node, *node.get("Workers", [])]
    kib = sum(place.get(hashed, 0) for place in places)
    kib += sum(place.get("Sort Space Used", 0) for place in places if place.get("Sort Space Type") == kind)
    return kib / 1024 + sum(plan_mib(child, kind) for child in node.get("Plans", []))


def collect_part(files: list[str], first_record: int) -> bytes:
    """Digest one worker's range."""
    batches = (pa.ipc.open_stream(path).read_next_batch() for path in files)
    part = RECORD_GATE.collect(batches, key=KEY, first_record=first_record)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, part.schema) as writer:
        writer.write_table(part)
    return sink.getvalue().to_pybytes()


def run_workers(rows: int) -> dict[str, Any]:
    """Digest the same files with one and with two workers; the results must be equal."""
    data, found = Data(VOCABULARY), {}
    with tempfile.TemporaryDirectory(prefix="dpal-gate-") as folder:
        files = []
        for number in range(rows // BATCH_ROWS):
            batch = data.batch(number)
            files.append(str(Path(folder) / f"{number}.arrow"))
            with pa.ipc.new_stream(files[-1], batch.schema) as writer:
                writer.write_batch(batch)
        outputs = []
        for workers in (1, 2):
            parts = [part.tolist() for part in np.array_split(np.array(files), workers)]
            starts = np.cumsum([0, *(len(part) * BATCH_ROWS for part in parts)]).tolist()
            with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
                list(pool.map(collect_part, [[]] * workers, [0] * workers))
                start = time.perf_counter()
                digests = pool.map(collect_part, parts, starts)
                tables = [pa.ipc.open_stream(digest).read_all() for digest in digests]
                outputs.append(RECORD_GATE.decide(tables, key=KEY))
                found[f"wall_seconds_{workers}"] = round(time.perf_counter() - start, 3)
        found["equal"] = outputs[0].equals(outputs[1])
    return found


def best(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the run of the fewest processor seconds."""
    return min(runs, key=lambda run: run["cpu_seconds"])


def main() -> int:
    """Measure, print one JSON object, and return 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=int, nargs="*", default=[10_000_000, 50_000_000])
    parser.add_argument("--one", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(run_here(arguments.one, arguments.rows, arguments.vocabulary)))
        return 0
    packages = {"apache": "datasketches", "duckdb": "duckdb"}
    missing = {start for start, package in packages.items() if importlib.util.find_spec(package) is None}
    names = [name for name in CONTENDERS if not any(name.startswith(start) for start in missing)]
    report: dict[str, Any] = {"rows": arguments.rows, "load_before": os.getloadavg()[0]}
    report |= {f"{packages[start]}": "not installed" for start in sorted(missing)}
    # Taken in turns, so that what else the machine does meets all of them.
    runs = [{name: run_apart(name, arguments.rows) for name in names} for _ in range(arguments.repeats)]
    report |= {name: best([run[name] for run in runs]) for name in names}
    report["postgres"] = run_postgres(arguments.rows)
    report["workers"] = run_workers(arguments.rows)
    # Both sizes in turns as well: a machine that slows down between one size and the next looks like a curve.
    scaled = [{rows: run_apart("record_gate", rows) for rows in arguments.scale} for _ in range(arguments.repeats)]
    for rows in arguments.scale:
        report[f"record_gate_{rows}"] = best([run[rows] for run in scaled])
        # A log whose vocabulary grows with it, so that the sample holds ever more texts.
        report[f"record_gate_{rows}_growing"] = run_apart("record_gate", rows, VOCABULARY * rows // arguments.rows)
    broken = limits(report, arguments.scale)
    print(json.dumps(report, indent=2))
    return int(broken)


def limits(report: dict[str, Any], scale: list[int]) -> bool:
    """Add the ratios that are promised to the report and return whether one is missed."""

    def ratio(peer: str, ours: str) -> float:
        return round(report[peer]["cpu_seconds"] / report[ours]["cpu_seconds"], 2)

    broken = report["checked_gate"]["false_admits"] + report["checked_gate"]["missed"] > 0
    broken |= report["ours_sketch_arrow"]["under_the_truth"] > 0 or not report["workers"]["equal"]
    if "apache_arrow" in report:
        report["times_apache_from_arrow"] = ratio("apache_arrow", "ours_sketch_arrow")
        report["times_apache_from_a_list"] = ratio("apache_list", "ours_sketch_list")
        report["times_apache_for_contributors"] = ratio("apache_contributors", "contributor_gate")
        broken |= report["times_apache_from_arrow"] < ARROW_LIMIT
        broken |= report["times_apache_from_a_list"] < LIST_LIMIT
        broken |= report["times_apache_for_contributors"] < CONTRIBUTOR_LIMIT
    costs = [report[f"record_gate_{rows}"]["cpu_seconds"] / rows for rows in scale]
    for rows, cost in zip(scale, costs, strict=True):
        report[f"cost_of_a_row_at_{rows}"] = round(cost / costs[0], 2)
        broken |= cost / costs[0] > LINEAR_LIMIT
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
