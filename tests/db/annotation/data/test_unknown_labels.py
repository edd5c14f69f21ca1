"""A refusal lists the labels of the file beside the classes, for who uploaded it, and takes a mapping."""

import pytest
from django.core.management import CommandError, call_command

from tests.factories import make_project

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]


def test_the_refusal_names_labels_and_classes_and_the_mapping_is_taken(tmp_path):
    project = make_project(slug="words", classes=["negative", "positive"])
    file = tmp_path / "rows.csv"
    file.write_text("text,label\none,neg\ntwo,pos\nthree,neg\n")
    with pytest.raises(CommandError) as refused:
        call_command("import_dataset", file, project="words", role="public_test")
    assert "are no class: neg, pos. Classes: negative, positive." in str(refused.value)
    assert '{"values": {"neg": "negative"}}' in str(refused.value)
    job = project.datasets.get().job
    assert "neg" not in job.error
    call_command("import_dataset", file, project="words", role="public_test", value=["neg=negative", "pos=positive"])
    assert list(project.datasets.last().records.order_by("row_number").values_list("label", flat=True)) == [0, 1, 0]


def test_labels_of_private_examples_are_in_no_refusal(tmp_path):
    make_project(slug="words", classes=["negative", "positive"])
    file = tmp_path / "rows.csv"
    file.write_text("text,label\none,secretclass\n")
    with pytest.raises(CommandError) as refused:
        call_command("import_dataset", file, project="words", role="charged_start", start_epsilon=0.5)
    assert "secretclass" not in str(refused.value)
