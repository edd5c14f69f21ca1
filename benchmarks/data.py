"""Import of 1 M texts in every format, beside COPY: `data.py [--rows N]`.

Limits: each format at least 100,000 rows a second where the encoded COPY reaches that, CSV at least half of it; 10,000
rows within a second; an import of N holds at most 1.1 times what N / 2 does, or 16 MiB more.
"""

import argparse
import ctypes
import gc
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _embedded import own_site

RATE_LIMIT, COPY_LIMIT, SMALL_SECONDS_LIMIT = 100_000, 0.5, 1.0
MEMORY_LIMIT, MEMORY_SLACK_MIB = 1.1, 16
SMALL = 10_000
WORDS = ("play", "stop", "next", "call", "mum", "set", "an", "alarm", "for", "ten", "what", "is", "the", "weather")
COLUMNS = "dataset_id, row_number, text, payload, contributor, label, metadata"
Report = dict[str, Any]


class Measured:
    """Seconds, processor seconds and the most memory beyond the start of one block."""

    def __enter__(self) -> "Measured":
        import pyarrow as pa

        gc.collect()
        pa.default_memory_pool().release_unused()
        ctypes.CDLL(None).malloc_trim(0)  # what was given back stands in nobody's way
        Path("/proc/self/clear_refs").write_text("5")  # and the peak is forgotten
        self._memory = status_mib("VmRSS")
        self._processor, self._clock = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.perf_counter() - self._clock
        self.processor_seconds = time.process_time() - self._processor
        self.extra_mib = status_mib("VmHWM") - self._memory


def status_mib(name: str) -> float:
    """Return a size the kernel knows of this process, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def rows_of(count: int) -> Iterator[tuple[int, str, str]]:
    """Yield short queries of 200,000 people, some with commas and line ends."""
    rng = random.Random(1)
    for number in range(count):
        text = " ".join(rng.choices(WORDS, k=8))
        yield number, f"person-{rng.randrange(200_000)}", f"{text},\nplease" if number % 50 == 0 else text


def write_csv(path: Path, count: int) -> None:
    with path.open("w", newline="") as file:
        file.write("id,person,text\n")
        for number, person, text in rows_of(count):
            file.write(f'{number},{person},"{text}"\n' if "," in text else f"{number},{person},{text}\n")


def write_jsonl(path: Path, count: int) -> None:
    with path.open("w") as file:
        for number, person, text in rows_of(count):
            file.write(json.dumps({"id": number, "person": person, "text": text}) + "\n")


def write_parquet(path: Path, count: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("id", pa.int64()), ("person", pa.string()), ("text", pa.string())])
    rows = rows_of(count)
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, count, 100_000):
            part = [next(rows) for _ in range(min(100_000, count - start))]
            writer.write_table(pa.table(list(zip(*part, strict=True)), schema=schema))


FORMATS: dict[str, Callable[[Path, int], None]] = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}


class Site:
    def __init__(self) -> None:
        from django.contrib.auth.models import User

        from annotation.projects.services import opening

        self.project = opening.create_project(
            name="benchmark",
            preset="pool-experts",
            owner=User.objects.create_user("owner"),
            data_kind="text",
            classes=["yes", "no"],
            question="Which?",
        )

    def receive(self, path: Path) -> Any:
        from django.core.files import File

        from annotation.data.services import datasets

        with path.open("rb") as stream:
            return datasets.receive_upload(
                project=self.project,
                file=File(stream),
                name=path.name,
                mapping={"contributor": "person"},
                confirm_few=True,
                send=False,
            )

    def imported(self, path: Path) -> None:
        from annotation.data.services import datasets

        datasets.import_dataset(job_id=self.receive(path).job_id)


def measure(site: Site, folder: Path, rows: int) -> Report:
    """Import half of the rows and all of them from each format, then copy the rows of the last as they are encoded."""
    from annotation.data.services import datasets
    from annotation.models import Dataset

    report: Report = {"formats": {}}
    dataset = Dataset()
    for ending, write in FORMATS.items():
        site.imported(written(write, folder / f"warm.{ending}", SMALL // 10))  # what a worker has imported long ago
        small = written(write, folder / f"small.{ending}", SMALL)
        with Measured() as quick:
            site.imported(small)
        waiting = site.receive(written(write, folder / f"half.{ending}", rows // 2))
        with Measured() as half:
            datasets.import_dataset(job_id=waiting.job_id)
        dataset = site.receive(written(write, folder / f"rows.{ending}", rows))
        with Measured() as whole:
            datasets.import_dataset(job_id=dataset.job_id)
        dataset.refresh_from_db()
        assert (dataset.row_count, dataset.bad_row_count) == (rows, 0)
        report["formats"][ending] = {
            "rows_per_second": rows / whole.seconds,
            "microseconds_of_processor_per_row": whole.processor_seconds / rows * 1e6,
            "seconds_of_10000": quick.seconds,
            "extra_mib": whole.extra_mib,
            "extra_mib_of_half": half.extra_mib,
        }
    report["encoded_copy_rows_per_second"] = copied = rows / encoded_copy(site, dataset, folder / "small.csv")
    report["csv_share_of_encoded_copy"] = report["formats"]["csv"]["rows_per_second"] / copied
    return report


def written(write: Callable[[Path, int], None], path: Path, rows: int) -> Path:
    write(path, rows)
    return path


def encoded_copy(site: Site, stored: Any, small: Path) -> float:
    """Store the rows of a dataset once more, as COPY takes them, and return the seconds."""
    from django.db import connection, transaction

    from annotation.data.services.records import RECORD_COLUMNS, RECORDS
    from annotation.models.database import copied_into

    chosen = COLUMNS.replace("dataset_id", f"{site.receive(small).pk}::bigint")
    statement = f"SELECT {chosen} FROM annotation_record WHERE dataset_id = {stored.pk} ORDER BY row_number"
    with connection.cursor() as cursor, cursor.copy(f"COPY ({statement}) TO STDOUT (FORMAT BINARY)") as copy:
        view = memoryview(b"".join(copy))
    with Measured() as encoded, transaction.atomic(), copied_into(RECORDS, RECORD_COLUMNS) as copy:
        for start in range(0, len(view), 2**20):
            copy.write(view[start : start + 2**20])
    return encoded.seconds


def broken_limits(report: Report) -> list[str]:
    broken = []
    reached = report["encoded_copy_rows_per_second"] >= RATE_LIMIT
    for name, one in report["formats"].items():
        if one["seconds_of_10000"] > SMALL_SECONDS_LIMIT:
            broken.append(f"{name}: 10,000 took {one['seconds_of_10000']:.2f} s")
        half, whole = one["extra_mib_of_half"], one["extra_mib"]
        if whole > max(MEMORY_LIMIT * half, half + MEMORY_SLACK_MIB):
            broken.append(f"{name}: {whole:.0f} MiB where half the rows hold {half:.0f}")
        if reached and one["rows_per_second"] < RATE_LIMIT:
            broken.append(f"{name}: {one['rows_per_second']:,.0f} rows a second")
    if report["csv_share_of_encoded_copy"] < COPY_LIMIT:
        broken.append(f"csv: {report['csv_share_of_encoded_copy']:.2f} of the encoded COPY")
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    report: Report = {"rows": options.rows, "load": os.getloadavg()[0]}
    with own_site("dpal-data-") as folder:
        report |= measure(Site(), folder, options.rows)
    report["load_at_the_end"] = os.getloadavg()[0]
    print(json.dumps(rounded(report), indent=2))
    for line in (broken := broken_limits(report)):
        print(f"Broken: {line}", file=sys.stderr)
    return bool(broken)


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return round(value, 3) if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
