"""A file of labels is read as it was written, whatever its format and whatever texts and classes are called."""

import io

import pytest

from annotation.data.readers.reading import Upload
from annotation.data.services.label_files import FILE_KINDS, ExportFormat, export_labels
from annotation.questions.services import labels, queue
from dpal.reading.rows import Layout
from tests.factories import asked_project

pytestmark = pytest.mark.django_db(transaction=True)
CLASSES = [
    *("-1", "0", "+2", "=SUM(1)", "@home", "'quoted", "'=twice", "-Nx0a", "+49 30 1"),
    *("a|b", "a, b", "a; b", "[x]", "['y']", '"z"', "Yes: no", "é", "true", "1.5", "ß", "#tag", "__label__x"),
]
TEXTS = ["=1+1 is two", "-5 degrees", "'=quoted", "plain", "two\nlines", "+49 30 1234567", 'é, "so"; it\'s']


@pytest.mark.parametrize("name", [one for one in ExportFormat if one != ExportFormat.CROISSANT])
def test_labels_come_back_as_they_went(name):
    # A reader of tables takes the apostrophe before a formula for what protects one, and in a plain file nothing does.
    plain = name == ExportFormat.PLAIN_CSV
    classes, texts = ([one for one in names if not (plain and one.startswith("'="))] for names in (CLASSES, TEXTS))
    project, questions, (person,) = asked_project(len(classes), classes=classes)
    for place, question in enumerate(questions):
        text = f"{texts[place % len(texts)]} {place}"
        type(question.record).objects.filter(pk=question.record_id).update(text=text)
    stored = {}
    for choice in range(len(classes)):
        assignment = queue.claim_next(project=project, user=person)
        record = type(questions[0].record).objects.get(pk=assignment.query.record_id)
        stored[record.text] = choice
        labels.submit_label(assignment=assignment, choice=choice)
    data = io.BytesIO(b"".join(export_labels(project=project, format=name)))
    label = "class" if name == ExportFormat.LABEL_STUDIO else "answer"
    layout = Layout(kind="text", text="text", label=label, classes=tuple(classes))
    batches = list(Upload(data, f"labels.{FILE_KINDS[name].ending}", layout, maximum_bytes=10**6).batches())
    assert [row for batch in batches for row in batch.bad] == []
    read = {text: place for batch in batches for text, place in zip(batch.texts, batch.labels, strict=True)}
    assert read == stored
