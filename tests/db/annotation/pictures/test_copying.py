import io
import zipfile

import numpy as np
import pytest
from django.db import connection, transaction
from PIL import Image

from annotation.data.readers.images import ImageArchiveReader
from annotation.data.services import datasets, mappings
from annotation.data.services.forgetting import empty_records
from annotation.data.services.pictures import image_ahead, image_of, shown_image
from annotation.models import Dataset, Picture, Project, Query, Record
from annotation.questions.services import queue
from dpal.reading.rows import Layout
from tests.factories import bring_file, make_project, make_records, make_user
from tests.owning import as_owner
from tests.pure.annotation.data.readers.test_pictures import BLUE, RED, near, opened, saved
from tests.refusing import refused

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]
# Of one brightness.
GREEN_OF_RED, RED_OF_GREEN = (0, 100, 0), (196, 0, 0)


def zipped(*contents, folder=""):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as target:
        for number, content in enumerate(contents):
            target.writestr(f"{folder}{number}.webp", content)
    return sink.getvalue()


def plain(colour, size=(60, 40)):
    return saved(Image.new("RGB", size, colour), "WEBP", lossless=True)


def imported(*contents, project=None, role="pool", folder=""):
    project = project or make_project(data_kind="image", image_height=2, image_width=3)
    dataset = bring_file(project, zipped(*contents, folder=folder), name="a.zip", role=role, uploaded_by=make_user())
    datasets.import_dataset(job_id=dataset.job_id)
    return Dataset.objects.get(pk=dataset.pk)


def pictures_of(dataset):
    return Picture.objects.filter(record__dataset=dataset).order_by("record__row_number")


def asked(dataset):
    records = list(dataset.records.order_by("row_number"))
    queue.open_queries(project=dataset.project, round_number=1, record_ids=[record.pk for record in records])
    return records


def colour_of(content):
    return Image.open(io.BytesIO(content)).convert("RGB").getpixel((1, 1))


def test_each_record_has_its_own_picture_and_a_bad_row_shifts_none():
    grey = saved(Image.fromarray(np.full((2, 3), 9, dtype=np.uint8)), "PNG")
    dataset = imported(plain(RED), b"no image", grey, plain(BLUE, (300, 700)))
    first, second, third = asked(dataset)
    assert [(one.record_id, one.width, one.height) for one in pictures_of(dataset)] == [
        (first.pk, 60, 40),
        (third.pk, 300, 700),
    ]
    shown = shown_image(first)
    assert (shown.content_type, near(colour_of(shown.content), RED)) == ("image/webp", True)
    assert near(colour_of(shown_image(third).content), BLUE)
    # What its grey values show as it is needs no second copy.
    assert (shown_image(second).content_type, shown_image(second).content) == ("image/png", image_of(second))
    assert np.load(dataset.pixels.path)[1].tolist() == [[9] * 3] * 2


def test_a_page_knows_the_size_of_a_picture_before_it_is_there():
    (record,) = asked(imported(plain(RED)))
    ahead = image_ahead(record, height=2, width=3, most_bytes=10**6)
    assert (ahead.width, ahead.height, ahead.small) == (60, 40, shown_image(record))
    assert image_ahead(record, height=2, width=3, most_bytes=10).small is None


def test_public_examples_have_pictures_too_so_that_a_hidden_check_looks_like_any_question():
    project = make_project(data_kind="image", image_height=2, image_width=3, classes=["cat", "dog"])
    assert pictures_of(imported(plain(RED), project=project, role="public_test", folder="cat/")).count() == 1


def test_many_pictures_cross_batches_in_order(monkeypatch):
    monkeypatch.setattr("annotation.data.readers.images.BATCH_BYTES", 150)
    colours = [(10 * number, 0, 250 - 10 * number) for number in range(25)]
    dataset = imported(*(plain(colour) for colour in colours))
    assert [opened(one).convert("RGB").getpixel((1, 1)) for one in pictures_of(dataset)] == colours


def test_emptying_a_record_erases_its_picture_and_no_other():
    dataset = imported(plain(RED), plain(BLUE))
    first, second = asked(dataset)
    with transaction.atomic():
        empty_records(Record.objects.filter(pk=first.pk), project=dataset.project)
    assert list(pictures_of(dataset).values_list("record", flat=True)) == [second.pk]
    with refused("annotation_picture_of_nothing"):
        Picture.objects.create(record=first, width=1, height=1, content=b"x")


def test_deleting_records_deletes_their_pictures_however_it_is_done():
    dataset = imported(plain(RED), plain(BLUE))
    first, second = dataset.records.order_by("row_number")
    first.delete()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM annotation_record WHERE id = %s", [second.pk])
    assert not Picture.objects.exists()


def test_a_picture_is_told_of_a_question_that_was_asked_alone():
    dataset = imported(plain(RED))
    (record,) = dataset.records.all()
    assert shown_image(record).content_type == "image/png"
    asked(dataset)
    assert shown_image(record).content_type == "image/webp"


class TestBehindAGate:
    def test_importing_keeps_no_picture_and_reads_the_same_grey_values(self):
        layout = Layout(kind="image", height=2, width=3)
        both = zipped(plain(GREEN_OF_RED), plain(RED_OF_GREEN))
        (batch,) = ImageArchiveReader(io.BytesIO(both), layout, maximum_bytes=10**6).batches()
        assert batch.pictures is None
        assert (batch.pixels[0] == batch.pixels[1]).all()

    @pytest.mark.parametrize(("oracle", "keeps"), [("crowd", False), ("trusted", True)])
    def test_who_sees_records_decides(self, oracle, keeps):
        project = make_project(data_kind="image", image_height=2, image_width=3)
        project.oracle = oracle
        assert mappings.layout_of(project, "pool", {}).pictures is keeps

    def test_the_database_refuses_a_picture(self):
        project = make_project(oracle="crowd", selection="uncertainty")
        (record,) = make_records(project, ["a"])
        with refused("annotation_picture_in_sight"):
            Picture.objects.create(record=record, width=1, height=1, content=b"x")

    def test_a_project_with_pictures_is_put_before_no_crowd(self):
        project = make_project()
        (record,) = make_records(project, ["a"], role="public_test")
        Picture.objects.create(record=record, width=1, height=1, content=b"x")
        assert not Query.objects.filter(project=project).exists()
        with refused("annotation_picture_in_sight"):
            Project.objects.filter(pk=project.pk).update(oracle="crowd")

    def test_no_record_takes_its_picture_there(self):
        crowd = make_project(oracle="crowd", selection="uncertainty")
        (other,) = make_records(crowd, ["a"])
        (record,) = make_records(make_project(), ["b"])
        Picture.objects.create(record=record, width=1, height=1, content=b"x")
        with refused("annotation_picture_in_sight"):
            Record.objects.filter(pk=record.pk).update(dataset=other.dataset, row_number=7)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"content": b""}, "annotation_picture_bytes"),
        ({"content": bytes(1024 * 1024 + 1)}, "annotation_picture_bytes"),
        ({"width": 0}, "annotation_picture_sides"),
        ({"height": 2049}, "annotation_picture_sides"),
    ],
)
def test_the_database_bounds_a_picture(values, rule):
    (record,) = make_records(make_project(), ["a"])
    with refused(rule):
        Picture.objects.create(**{"record": record, "width": 1, "height": 1, "content": b"x"} | values)


def test_a_picture_never_changes():
    (record,) = make_records(make_project(), ["a"])
    Picture.objects.create(record=record, width=1, height=1, content=b"x")
    with as_owner(), refused("annotation_picture_fixed"):
        Picture.objects.update(content=b"y")
