import hashlib
import io
import json
import zipfile

import mlcroissant
import pytest

from annotation.data.croissant import DESCRIPTION, FIELDS, LABELS
from annotation.data.services.label_files import TABLE_COLUMNS, export_labels
from annotation.models import Dataset, Record
from annotation.questions.services import labels, queue
from tests.factories import asked_project

pytestmark = [
    pytest.mark.django_db,
    # Of the library's own dependencies.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
]


@pytest.fixture
def unpacked(tmp_path):
    project, _, people = asked_project(2, 2, overlap=2, name='Züge "A" & <b>', classes=["sport", "mu:sic", "Ümlaut"])
    for person, choices in zip(people, ((0, 1), (0,)), strict=True):
        for choice in choices:
            labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    content = b"".join(export_labels(project=project, format="croissant"))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [LABELS, DESCRIPTION]
        archive.extractall(tmp_path)
    return tmp_path


def test_mlcroissant_takes_it_and_reads_the_answers(unpacked):
    dataset = mlcroissant.Dataset(jsonld=unpacked / DESCRIPTION)
    assert dataset.metadata.ctx.issues.errors == set()
    # How to cite answers, nobody has said.
    (warning,) = dataset.metadata.ctx.issues.warnings
    assert "citeAs" in warning
    assert str(dataset.metadata.ctx.conforms_to.value) == "http://mlcommons.org/croissant/1.1"
    rows = list(dataset.records("answers"))
    assert [row["answers/answer"] for row in rows] == [b"sport", b"sport", b"mu:sic"]
    assert rows[0]["answers/question"] == rows[1]["answers/question"] != rows[2]["answers/question"]
    assert [row["classes/name"] for row in dataset.records("classes")] == ["sport", "mu:sic", "Ümlaut"]


def test_the_description_names_every_column_and_the_digest(unpacked):
    document = json.loads((unpacked / DESCRIPTION).read_text(encoding="utf-8"))
    assert tuple(FIELDS) == TABLE_COLUMNS
    (file,) = document["distribution"]
    assert file["sha256"] == hashlib.sha256((unpacked / LABELS).read_bytes()).hexdigest()
    assert file["contentSize"] == f"{(unpacked / LABELS).stat().st_size} B"
    assert "no differential privacy" in document["description"]


def test_a_wrong_description_is_refused_by_the_library(unpacked):
    """The test above can fail."""
    document = json.loads((unpacked / DESCRIPTION).read_text(encoding="utf-8"))
    document["recordSet"][1]["field"][0]["source"]["fileObject"]["@id"] = "another"
    (unpacked / DESCRIPTION).write_text(json.dumps(document))
    with pytest.raises(mlcroissant.ValidationError, match="another"):
        mlcroissant.Dataset(jsonld=unpacked / DESCRIPTION)
    document["recordSet"][1]["field"][0]["source"]["fileObject"]["@id"] = LABELS
    document["distribution"][0]["sha256"] = "ab" * 32
    (unpacked / DESCRIPTION).write_text(json.dumps(document))
    with pytest.raises(mlcroissant.GenerationError, match="Download"):
        list(mlcroissant.Dataset(jsonld=unpacked / DESCRIPTION).records("answers"))


def test_the_owners_columns_are_columns_of_the_answers(tmp_path):
    names = ["text", "Größe in m²", "a.b/c: 'd'"]
    project, (query,), (person,) = asked_project()
    Dataset.objects.filter(project=project).update(mapping={"metadata": names})
    pairs = [[name, name.upper()] for name in names]
    Record.objects.filter(pk=query.record_id).update(metadata={"id": None, "columns": pairs})
    labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
    with zipfile.ZipFile(io.BytesIO(b"".join(export_labels(project=project, format="croissant")))) as archive:
        archive.extractall(tmp_path)
    (row,) = mlcroissant.Dataset(jsonld=tmp_path / DESCRIPTION).records("answers")
    assert [row[f"answers/metadata.{number}"].decode() for number in (1, 2, 3)] == [name.upper() for name in names]
    assert row["answers/text"] == b"record 0"


def test_declared_columns_are_typed_columns_of_the_answers(tmp_path):
    columns = [{"name": "age in years", "low": 0, "high": 120}, {"name": "answer", "categories": ["x", "y"]}]
    project, (query,), (person,) = asked_project(data_kind="table", columns=columns)
    Record.objects.filter(pk=query.record_id).update(text=None, payload={"age in years": 7, "answer": "y"})
    labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
    with zipfile.ZipFile(io.BytesIO(b"".join(export_labels(project=project, format="croissant")))) as archive:
        archive.extractall(tmp_path)
    (row,) = mlcroissant.Dataset(jsonld=tmp_path / DESCRIPTION).records("answers")
    assert [row[f"answers/{key}"] for key in ("fields.1", "fields.2", "answer")] == [7.0, b"y", b"sport"]
