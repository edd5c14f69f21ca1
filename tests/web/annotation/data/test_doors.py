"""One file at the page, at REST and at the command: the same records with the same labels."""

import gzip
import io
import json
import zipfile

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.urls import reverse

from annotation.data.services import datasets
from annotation.models import Dataset, Role
from annotation.work.services.tokens import Scope
from tests.clients import browser_of, program_of
from tests.factories import add_members, make_project
from tests.workbooks import sheet, workbook

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]
ROWS = [{"text": "one thing", "label": ["Yes"]}, {"text": "another", "label": 1}, {"text": "a third", "label": True}]
PLAIN = [["text", "label"], ["one thing", "Yes"], ["another", "1.0"], ["a third", "TRUE"]]
STORED = [("one thing", 0), ("another", 1), ("a third", 2)]
TABLE = "\r\n".join(",".join(row) for row in PLAIN).encode()


def packed(content: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("out/rows.csv", content)
        archive.writestr("__MACOSX/out/._rows.csv", b"x")
    return sink.getvalue()


FILES = {
    "rows.csv": b"\xef\xbb\xbfsep=,\r\n" + TABLE,
    "rows.csv.gz": gzip.compress(TABLE),
    "rows.zip": packed(TABLE),
    "rows.jsonl": "\n".join(map(json.dumps, ROWS)).encode(),
    "rows.json": json.dumps({"data": ROWS}).encode(),
    "columns.json": json.dumps({"text": [one[0] for one in STORED], "label": ["yes", 1, "true"]}).encode(),
    "rows.xlsx": workbook({"A": sheet([["Title"], *PLAIN[:3], ["a third", True]])}),
    "rows.txt": b"__label__YES one thing\n__label__1 another\n__label__true a third\n",
}
SKIPPED = {"rows.xlsx": 1}


@pytest.mark.parametrize("door", ["page", "rest", "command"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_alike_at_every_door(manager: User, tmp_path, name: str, door: str) -> None:
    project = make_project(owner=manager, classes=["yes", "1", "true"])
    add_members(project, manager, role=Role.MANAGER)
    data, mapping = FILES[name], {"skip_rows": SKIPPED[name]} if name in SKIPPED else {}
    file = SimpleUploadedFile(name, data)
    if door == "command":
        path = tmp_path / name
        path.write_bytes(data)
        call_command("import_dataset", path, project=project.slug, role="public_test", **mapping)
    elif door == "rest":
        client = program_of(manager, Scope.DATASETS_WRITE)
        sent = {"file": file, "role": "public_test", "mapping": json.dumps(mapping)}
        assert client.post(f"/api/v1/projects/{project.slug}/datasets", sent).status_code == 202
    else:
        client = browser_of(manager)
        values = {"role": "public_test", "bad_rows": "refuse_all", "has_header": "on", "look": "1", "file": file}
        address = client.post(reverse("annotation:data", args=[project.slug]), values)["Location"]
        written = {"has_header": "on", "quoting": "on", "delimiter": ",", "text": "text", "label": "label"} | mapping
        if mapping:
            client.post(address, written | {"sheet": "A"})
        response = client.post(address, {**written, "sheet": "A", "upload": "1"})
        assert response.status_code == 302, response.context["form"].errors
    dataset = Dataset.objects.get()
    if door != "command":
        datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    assert (dataset.state, dataset.bad_row_report) == ("ready", [])
    assert list(dataset.records.order_by("row_number").values_list("text", "label")) == STORED
