"""Tables of somebody else's, as Parquet files in a folder that the operator allows."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from annotation.data.services import datasets, registered
from annotation.models import Dataset
from tests.factories import make_user
from tests.gate_scans import PEOPLE, TEXTS


def write_table(folder: Path, *, files: int = 3, texts: Any = TEXTS, people: Any = PEOPLE, **options: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = pa.table({"said": texts, "who": people, "note": ["not read"] * len(texts)})
    size = -(-rows.num_rows // files)
    for number in range(files):
        pq.write_table(rows.slice(number * size, size), folder / f"part-{number}.parquet", **options)
    return folder


def spoil_pages(folder: Path) -> None:
    for path in folder.glob("*.parquet"):
        content = path.read_bytes()
        footer = int.from_bytes(content[-8:-4], "little") + 8
        path.write_bytes(content[:4] + bytes(len(content) - 4 - footer) + content[-footer:])


def register(project: Any, place: Path | str, **options: Any) -> Any:
    address = place if isinstance(place, str) else place.as_uri()
    named = {"contributor": "who"} if project.privacy_unit == "contributor" else {}
    given = {"project": project, "address": address, "text": "said", "registered_by": make_user(), "send": False}
    dataset = registered.register_table(**given | named | options)
    datasets.import_dataset(job_id=dataset.job_id)
    return Dataset.objects.select_related("job", "gate_job", "project").get(pk=dataset.pk)
