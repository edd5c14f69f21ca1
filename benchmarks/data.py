"""Import of 1 M texts and export of 1 M labels in every format, beside COPY: `data.py [--rows N] [--only in|out]`.

Limits: each format at least 100,000 rows a second where the encoded COPY reaches that, CSV at least half of it and 5
times `bulk_create`; 10,000 rows within a second; neither an import nor an export of N holds more than 1.1 times what
N / 2 does, or 16 MiB more.
"""

import argparse
import ctypes
import gc
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

RATE_LIMIT, COPY_LIMIT, BULK_CREATE_LIMIT, SMALL_SECONDS_LIMIT = 100_000, 0.5, 5, 1.0
MEMORY_LIMIT, MEMORY_SLACK_MIB = 1.1, 16
SMALL, BULK_CREATE_PART = 10_000, 20
WORDS = ("play", "stop", "next", "call", "mum", "set", "an", "alarm", "for", "ten", "what", "is", "the", "weather")
COLUMNS = "dataset_id, row_number, text, payload, contributor, label, metadata"
# A question for each record with one answer and its consensus, without the triggers that look at each of them.
ANSWERS = """
SET LOCAL session_replication_role = replica;
INSERT INTO annotation_query (project_id, record_id, state, round_number, priority, overlap, open_slots)
SELECT %(project)s, id, 'closed', 1, row_number, 1, 0 FROM annotation_record WHERE dataset_id = %(dataset)s;
INSERT INTO annotation_label (assignment_id, query_id, annotator_id, choice, created_at)
SELECT gen_random_uuid(), id, %(person)s, id %% 2, now() FROM annotation_query WHERE project_id = %(project)s;
INSERT INTO annotation_consensus (project_id, query_id, choice, votes, agreeing, created_at)
SELECT project_id, id, id %% 2, 1, 1, now() FROM annotation_query WHERE project_id = %(project)s;
"""
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

        self.owner = User.objects.create_user("owner")
        self.project = self.open_project("benchmark")

    def open_project(self, name: str) -> Any:
        from annotation.projects.services import opening

        return opening.create_project(
            name=name,
            preset="pool-experts",
            owner=self.owner,
            data_kind="text",
            classes=["yes", "no"],
            question="Which?",
        )

    def receive(self, path: Path, project: Any = None) -> Any:
        from django.core.files import File

        from annotation.data.services import datasets

        with path.open("rb") as stream:
            return datasets.receive_upload(
                project=project or self.project,
                file=File(stream),
                name=path.name,
                mapping={"contributor": "person"},
                confirm_few=True,
                send=False,
            )

    def imported(self, path: Path, project: Any = None) -> Any:
        from annotation.data.services import datasets
        from annotation.models import Dataset

        dataset = self.receive(path, project)
        datasets.import_dataset(job_id=dataset.job_id)
        return Dataset.objects.get(pk=dataset.pk)

    def answered(self, path: Path, name: str, count: int) -> Any:
        from django.db import connection, transaction

        from annotation.models import Label
        from dpal_site.operations.preparation import as_owner

        project = self.open_project(name)
        dataset = self.imported(path, project)
        values = {"project": project.pk, "dataset": dataset.pk, "person": self.owner.pk}
        with as_owner(), transaction.atomic(), connection.cursor() as cursor:
            for statement in ANSWERS.strip().split(";\n"):
                cursor.execute(statement, values if "%(" in statement else None)
        with as_owner(), connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        assert Label.objects.filter(query__project=project).count() == count
        return project


def measure_in(site: Site, folder: Path, rows: int) -> Report:
    """Import half of the rows and all of them from each format, then give the same rows to the peers."""
    from annotation.data.services import datasets
    from annotation.models import Dataset

    report: Report = {}
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
        report[ending] = {
            "rows_per_second": rows / whole.seconds,
            "microseconds_of_processor_per_row": whole.processor_seconds / rows * 1e6,
            "seconds_of_10000": quick.seconds,
            "extra_mib": whole.extra_mib,
            "extra_mib_of_half": half.extra_mib,
        }
    report |= copy_peers(site, dataset, folder / "small.csv", rows)
    report["csv_share_of_encoded_copy"] = report["csv"]["rows_per_second"] / report["encoded_copy_rows_per_second"]
    report["csv_times_bulk_create"] = report["csv"]["rows_per_second"] / report["bulk_create_rows_per_second"]
    return report


def written(write: Callable[[Path, int], None], path: Path, rows: int) -> Path:
    write(path, rows)
    return path


def copy_peers(site: Site, stored: Any, small: Path, rows: int) -> Report:
    """Store the rows of a dataset three more times, each way into a dataset of its own."""
    from django.db import connection, transaction

    from annotation.data.services.records import RECORD_COLUMNS, RECORD_TYPES, RECORDS
    from annotation.models import Record
    from annotation.models.database import copied_into

    into = [site.receive(small).pk for _ in range(3)]
    chosen = COLUMNS.replace("dataset_id", f"{into[0]}::bigint")
    statement = f"SELECT {chosen} FROM annotation_record WHERE dataset_id = {stored.pk} ORDER BY row_number"
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY ({statement}) TO STDOUT (FORMAT BINARY)") as copy:
            held = b"".join(copy)
        cursor.execute(statement)
        ready = [(into[1], *row[1:]) for row in cursor.fetchall()]
    with Measured() as encoded, transaction.atomic(), copied_into(RECORDS, RECORD_COLUMNS) as copy:
        view = memoryview(held)
        for start in range(0, len(view), 2**20):
            copy.write(view[start : start + 2**20])
    del held, view
    with Measured() as by_row, transaction.atomic(), copied_into(RECORDS, RECORD_COLUMNS, RECORD_TYPES) as copy:
        for row in ready:
            copy.write_row(row)
    part = max(rows // BULK_CREATE_PART, 1)
    unsaved = [Record(dataset_id=into[2], row_number=row[1], text=row[2]) for row in ready[:part]]
    del ready
    with Measured() as created:
        Record.objects.bulk_create(unsaved, batch_size=2000)
    return {
        "encoded_copy_rows_per_second": rows / encoded.seconds,
        "write_row_rows_per_second": rows / by_row.seconds,
        "bulk_create_rows_per_second": part / created.seconds,
    }


def measure_out(site: Site, folder: Path, rows: int) -> Report:
    """Export the answers of three projects: 10,000, half of the rows, and all of them."""
    from django.db import connection

    from annotation.data.services.label_files import SELECT, ExportFormat, export_labels

    sizes = {"small": SMALL, "half": rows // 2, "whole": rows}
    projects = {
        name: site.answered(written(write_csv, folder / f"{name}-answers.csv", size), name, size)
        for name, size in sizes.items()
    }

    def exported(project: Any, chosen: str) -> int:
        return sum(len(piece) for piece in export_labels(project=project, format=chosen))

    report: Report = {}
    for chosen in ExportFormat:
        exported(projects["small"], chosen)
        with Measured() as quick:
            exported(projects["small"], chosen)
        with Measured() as half:
            exported(projects["half"], chosen)
        with Measured() as whole:
            size = exported(projects["whole"], chosen)
        report[chosen] = {
            "labels_per_second": rows / whole.seconds,
            "microseconds_of_processor_per_label": whole.processor_seconds / rows * 1e6,
            "seconds_of_10000": quick.seconds,
            "mib_sent": size / 2**20,
            "extra_mib": whole.extra_mib,
            "extra_mib_of_half": half.extra_mib,
        }
    with connection.cursor() as cursor:
        bound = cursor.mogrify(SELECT, {"project": projects["whole"].pk, "history": False})
        with Measured() as raw, cursor.copy(f"COPY ({bound}) TO STDOUT (FORMAT CSV)") as copy:
            for _block in copy:
                pass
    report["copy_to_labels_per_second"] = rows / raw.seconds
    for chosen in ExportFormat:
        report[chosen]["share_of_copy_to"] = report[chosen]["labels_per_second"] / report["copy_to_labels_per_second"]
    return report


def broken_limits(report: Report) -> list[str]:
    broken = []
    for way in ("in", "out"):
        for name, one in report.get(way, {}).items():
            if not isinstance(one, dict):
                continue
            if one["seconds_of_10000"] > SMALL_SECONDS_LIMIT:
                broken.append(f"{way} {name}: 10,000 took {one['seconds_of_10000']:.2f} s")
            half, whole = one["extra_mib_of_half"], one["extra_mib"]
            if whole > max(MEMORY_LIMIT * half, half + MEMORY_SLACK_MIB):
                broken.append(f"{way} {name}: {whole:.0f} MiB where half the rows hold {half:.0f}")
    if into := report.get("in"):
        reached = into["encoded_copy_rows_per_second"] >= RATE_LIMIT
        broken += [
            f"in {name}: {into[name]['rows_per_second']:,.0f} rows a second"
            for name in FORMATS
            if reached and into[name]["rows_per_second"] < RATE_LIMIT
        ]
        if into["csv_share_of_encoded_copy"] < COPY_LIMIT:
            broken.append(f"in csv: {into['csv_share_of_encoded_copy']:.2f} of the encoded COPY")
        if into["csv_times_bulk_create"] < BULK_CREATE_LIMIT:
            broken.append(f"in csv: {into['csv_times_bulk_create']:.1f} times bulk_create")
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", choices=["in", "out"], help="one of the two directions")
    options = parser.parse_args()
    for name in ("DATABASE_URL", "CELERY_BROKER_URL", "STORAGE_URL"):
        os.environ.pop(name, None)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")
    with tempfile.TemporaryDirectory(prefix="dpal-data-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        os.environ["DPAL_VAR"] = name
        import django
        from django.core.management import call_command
        from django.db import connections

        from dpal_site.embedded import servers

        report: Report = {"rows": options.rows, "load": os.getloadavg()[0]}
        try:
            django.setup()
            call_command("prepare_database", verbosity=0, skip_checks=True)
            site = Site()
            if options.only != "out":
                report["in"] = measure_in(site, folder, options.rows)
            if options.only != "in":
                report["out"] = measure_out(site, folder, options.rows)
        finally:
            connections.close_all()
            servers.stop_started()
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
