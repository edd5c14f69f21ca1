"""One file at the page, at REST and at the command: the same records with the same labels."""

import contextlib
import gzip
import io
import json
import zipfile
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.urls import reverse

from annotation.choices.label_types.catalogue import label_type_of
from annotation.data.services import datasets
from annotation.data.services.mappings import ONE_HOT
from annotation.models import Dataset, Project, Role
from annotation.work.services.tokens import Scope
from tests.clients import browser_of, program_of
from tests.factories import add_members, make_account, make_project
from tests.in_process import reading_here
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
HOT = b"text,YES,1,True\none thing,x,0,\nanother,0,1,0\na third,no,false,TRUE\n"
FILES["hot.csv"] = HOT
FILES["ragged.csv"] = b"text,label,note\none thing,yes\nanother,1,x,y\na third,true," + b"z" * 300_000 + b"\n"
MAPPED = {
    "ragged.csv": {"ragged_rows": True},
    "rows.xlsx": {"skip_rows": 1},
    "hot.csv": {"one_hot": ["YES", "1", "True"]},
}


@pytest.mark.parametrize("door", ["page", "rest", "command"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_alike_at_every_door(manager: User, tmp_path, name: str, door: str) -> None:
    project = make_project(owner=manager, classes=["yes", "1", "true"])
    with contextlib.nullcontext() if door == "rest" else reading_here():
        bring(project, manager, door, tmp_path / name, FILES[name], MAPPED.get(name, {}))
    assert list(Dataset.objects.get().records.order_by("row_number").values_list("text", "label")) == STORED


@pytest.mark.parametrize("door", ["page", "rest", "command"])
@pytest.mark.parametrize("mark", "|,;")
def test_the_separator_of_several_labels_is_chosen_at_every_door(manager: User, tmp_path, mark: str, door: str) -> None:
    project = make_project(
        owner=manager,
        classes=["late", "broken", "urgent"],
        question_kind="several",
        labels_per_record=2,
        estimator="label_sets",
        training_delta=1e-6,
        pool_account=make_account(delta_limit=1e-4),
    )
    data = f'text,label\none thing,"late{mark} urgent"\nanother,"broken{mark}urgent"\na third,late\n'.encode()
    bring(project, manager, door, tmp_path / "rows.csv", data, {} if mark == "|" else {"separator": mark})
    kind = label_type_of(project.question_kind, project.settings)
    stored = Dataset.objects.get().records.order_by("row_number").values_list("label", flat=True)
    assert [kind.places(label) for label in stored] == [(0, 2), (1, 2), (0,)]


def bring(project: Project, manager: User, door: str, path: Path, data: bytes, mapping: dict) -> None:
    """Bring a file by a door; every row is good."""
    add_members(project, manager, role=Role.MANAGER)
    name = path.name
    file = SimpleUploadedFile(name, data)
    if door == "command":
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
        if "one_hot" in mapping:
            written["label"] = written.pop("one_hot") and ONE_HOT
        if mapping:
            client.post(address, written | {"sheet": "A"})
        response = client.post(address, {**written, "sheet": "A", "upload": "1"})
        assert response.status_code == 302, response.context["form"].errors
    dataset = Dataset.objects.get()
    if door != "command":
        datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    assert (dataset.state, dataset.bad_row_report) == ("ready", [])
