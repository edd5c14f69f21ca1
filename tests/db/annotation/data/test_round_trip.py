"""A file of labels is read as it was written, whatever its format and whatever texts and classes are called."""

import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation.choices.label_types.catalogue import label_type_of
from annotation.data.readers.reading import Upload
from annotation.data.services.label_files import FILE_KINDS, SPANS_ALONE, ExportFormat, export_labels
from annotation.data.services.mappings import layout_of, look_at, suggested_mapping
from annotation.questions.services import labels, queue
from dpal.reading.labels import canonical_name, name_key
from dpal.reading.rows import Layout
from tests.factories import answer_next, asked_project, make_account

pytestmark = pytest.mark.django_db(transaction=True)
CLASSES = [
    *("-1", "0", "+2", "=SUM(1)", "@home", "'quoted", "'=twice", "-Nx0a", "+49 30 1"),
    *("a|b", "a, b", "a; b", "[x]", "['y']", '"z"', "Yes: no", "é", "true", "1.5", "ß", "#tag", "__label__x"),
]
TEXTS = ["=1+1 is two", "-5 degrees", "'=quoted", "plain", "two\nlines", "+49 30 1234567", 'é, "so"; it\'s']
FORMATS = [one for one in ExportFormat if one not in SPANS_ALONE]
SETS = {
    "question_kind": "several",
    "labels_per_record": 3,
    "none_allowed": True,
    "estimator": "label_sets",
    "training_delta": 1e-6,
}
NAMES = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).map(canonical_name).filter(bool),
    min_size=3,
    max_size=6,
    unique_by=name_key,
)
SIGNS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
DRAWN = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def written(project, name):
    """Return an export as a file that is uploaded."""
    return b"".join(export_labels(project=project, format=name)), f"labels.{FILE_KINDS[name].ending}"


def answered(texts, choices, **options):
    """Return a project whose records of these texts have these answers, and the answers by text."""
    project, questions, (person,) = asked_project(len(choices), **options)
    by_record = {question.record_id: f"{texts[n % len(texts)]} {n}" for n, question in enumerate(questions)}
    for number, text in by_record.items():
        type(questions[0].record).objects.filter(pk=number).update(text=text)
    stored = {}
    for choice in choices:
        assignment = queue.claim_next(project=project, user=person)
        stored[by_record[assignment.query.record_id]] = choice
        labels.submit_label(assignment=assignment, choice=choice)
    return project, stored


def read(project, name):
    data, file_name = written(project, name)
    kind = label_type_of(project.question_kind, project.settings)
    layout = Layout(
        kind="text",
        text="text",
        label="class" if name == ExportFormat.LABEL_STUDIO else "answer",
        classes=tuple(project.classes),
        sets=kind if project.question_kind == "several" else None,
    )
    batches = list(Upload(io.BytesIO(data), file_name, layout, maximum_bytes=10**6).batches())
    assert [row for batch in batches for row in batch.bad] == []
    return {text: label for batch in batches for text, label in zip(batch.texts, batch.labels, strict=True)}


def sayable(names, name):
    # A reader of tables takes the apostrophe before a formula for what protects one, and in a plain file nothing does.
    return [one for one in names if not (name == ExportFormat.PLAIN_CSV and one.startswith("'"))] or ["plain"]


@pytest.mark.parametrize("name", FORMATS)
def test_labels_come_back_as_they_went(name):
    classes = sayable(CLASSES, name)
    project, stored = answered(sayable(TEXTS, name), range(len(classes)), classes=classes)
    assert read(project, name) == stored


@pytest.mark.parametrize("name", FORMATS)
@DRAWN
@given(classes=NAMES, texts=st.lists(SIGNS, min_size=1, max_size=4))
def test_every_name_and_text_comes_back(name, classes, texts):
    classes = sayable(classes, name)
    classes += [f"class {n}" for n in range(3 - len(classes))]
    project, stored = answered(sayable(texts, name), range(len(classes)), classes=classes)
    assert read(project, name) == stored


@pytest.mark.parametrize("name", FORMATS)
@DRAWN
@given(classes=NAMES, sets=st.lists(st.sets(st.integers(0, 2), max_size=3), min_size=1, max_size=4))
def test_sets_of_labels_come_back(name, classes, sets):
    account = make_account(delta_limit=1e-4)
    choices = [sum(1 << place for place in each) for each in sets]
    project, stored = answered(["a text"], choices, classes=classes, pool_account=account, **SETS)
    assert read(project, name) == stored


@pytest.mark.parametrize("name", FORMATS)
def test_ratings_come_back(name):
    project, stored = answered(["a text"], [4, 0, 2], classes=["1", "2", "3", "4", "5"], question_kind="rating")
    assert read(project, name) == stored


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9)
COLUMNS = [
    {"name": "a: b", "categories": ["x"], "other": True, "missing": True},
    {"name": "n", "low": 0, "high": 1, "missing": True},
    {"name": "=1", "low": 0, "high": 1},
    # As other columns of the file are called, and as they are then.
    {"name": "answer", "low": 0, "high": 1},
    {"name": "fields.answer", "categories": ["x"], "other": True, "missing": True},
    {"name": "metadata.url", "categories": CLASSES},
]
PAYLOADS = st.fixed_dictionaries(
    {
        "a: b": SIGNS,
        "n": NUMBERS | st.none(),
        "=1": NUMBERS,
        "answer": NUMBERS,
        "fields.answer": SIGNS | st.none(),
        "metadata.url": st.sampled_from(sayable(CLASSES, ExportFormat.PLAIN_CSV)),
    }
)


def read_rows(project, data, file_name, label):
    """Return what an upload reads of each row, mapped as its page suggests."""
    shape = look_at(io.BytesIO(data), file_name, {})
    mapping = suggested_mapping(project=project, role="public_test", shape=shape, reading={})
    layout = layout_of(project, "public_test", mapping | {"label": label})
    batches = list(Upload(io.BytesIO(data), file_name, layout, maximum_bytes=10**6).batches())
    assert [row for batch in batches for row in batch.bad] == []
    return [pair for batch in batches for pair in zip(batch.payloads, batch.labels, strict=True)]


@pytest.mark.parametrize("name", FORMATS)
@DRAWN
@given(st.lists(PAYLOADS, min_size=1, max_size=3))
def test_rows_of_a_table_come_back(name, drawn):
    table = [
        {key: sayable([cell], name)[0] if isinstance(cell, str) else cell for key, cell in row.items()} for row in drawn
    ]
    project, questions, (person,) = asked_project(len(table), data_kind="table", columns=COLUMNS)
    typed = "\n".join(json.dumps(row | {"label": project.classes[0]}) for row in table).encode()
    rows = [payload for payload, _label in read_rows(project, typed, "rows.jsonl", "label")]
    for question, payload in zip(questions, rows, strict=True):
        type(question.record).objects.filter(pk=question.record_id).update(text=None, payload=payload)
        answer_next(project, person, 0)
    label = "class" if name == ExportFormat.LABEL_STUDIO else "answer"
    assert read_rows(project, *written(project, name), label) == [(payload, 0) for payload in rows]
