"""Beside a hidden check stands what stands beside the pool's questions: other files make none, and are named why."""

import csv
import io
import re
from threading import Thread

import pytest
from django.db import connection, transaction
from django.urls import reverse

from annotation.data.services import check_columns, datasets
from annotation.errors import InvalidConfiguration, InvalidUpload
from annotation.models import Dataset, DatasetState, Project, Role
from annotation.models.quality import GoldQuery
from annotation.questions.services import checks as gold
from tests import streaming
from tests.clients import browser_of
from tests.factories import add_members, bring_file, make_project, make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]
SAME = {"id": "ticket", "metadata": ["url", "shop"]}
COLUMNS = ("text", "label", "ticket", "url", "shop")
# What a file of checks may be beside a pool with `SAME`, and what is said of it.
OTHERS = {
    "no id": ({"metadata": ["url", "shop"]}, "it lacks the id"),
    "one column less": ({"id": "ticket", "metadata": ["url"]}, "it lacks the column 'shop'"),
    "nothing": ({}, "it lacks the id"),
    "one column more": (
        {"id": "ticket", "metadata": ["url", "shop", "text"]},
        "it has the column 'text', which stands beside no record",
    ),
    "another order": ({"id": "ticket", "metadata": ["shop", "url"]}, "in the order of the pool's: url, shop"),
}


def imported(project, mapping, role="pool", *, word="record"):
    sink = io.StringIO()
    writer = csv.writer(sink)
    writer.writerow(COLUMNS)
    for number in range(3):
        writer.writerow([f"{word} {number}", project.classes[0], f"T-{word}-{number}", "https://example.org", "Ulm"])
    dataset = bring_file(
        project, sink.getvalue().encode(), name=f"{word}.csv", role=role, mapping=mapping, uploaded_by=make_user()
    )
    datasets.import_dataset(job_id=dataset.job_id)
    return Dataset.objects.get(pk=dataset.pk)


def known(project, mapping, *, word="check"):
    return imported(project, mapping, "public_test", word=word)


def made(project, dataset):
    return gold.add_public_checks(project=project, dataset=dataset, owner=project.created_by, most=2)


class TestChecks:
    @pytest.mark.slow
    @pytest.mark.one_in(5)
    @pytest.mark.parametrize("name", OTHERS)
    def test_a_file_that_differs_from_the_pool_makes_none(self, name):
        mapping, rule = OTHERS[name]
        project = make_project()
        imported(project, SAME)
        with pytest.raises(InvalidConfiguration, match=re.escape(rule)):
            made(project, known(project, mapping))
        assert not GoldQuery.objects.exists()

    @pytest.mark.parametrize(
        ("mapping", "rule"), [({"id": "ticket"}, "it has an id"), ({"metadata": ["url"]}, "'url'")]
    )
    def test_a_pool_without_any_takes_none(self, mapping, rule):
        project = make_project()
        imported(project, {})
        with pytest.raises(InvalidConfiguration, match=rule):
            made(project, known(project, mapping))
        assert made(project, known(project, {}, word="plain")) == 2

    def test_the_same_file_makes_them_whatever_its_columns_are_called(self):
        project = make_project()
        imported(project, {**SAME, "id": "url", "metadata": ["shop"]})
        assert made(project, known(project, {"id": "ticket", "metadata": ["shop"]})) == 2

    def test_one_of_several_uploads_is_enough_and_a_refused_one_is_none(self):
        project = make_project()
        imported(project, SAME)
        newest = imported(project, {"id": "ticket"}, word="later")
        checks = known(project, SAME)
        assert made(project, checks) == 2
        refused = known(project, {}, word="plain")
        with pytest.raises(InvalidConfiguration, match="it lacks the id"):
            made(project, refused)
        Dataset.objects.filter(project=project, role="pool").exclude(pk=newest.pk).update(state=DatasetState.REFUSED)
        with pytest.raises(InvalidConfiguration, match="it has the column 'url'"):
            made(project, checks)

    def test_a_stream_has_none(self):
        project = streaming.open_stream(make_user("ada"))
        with pytest.raises(InvalidConfiguration, match="it has an id"):
            check_columns.refuse_telling_checks(project=project, dataset=Dataset(project=project, mapping=SAME))
        check_columns.refuse_telling_checks(project=project, dataset=Dataset(project=project, mapping={}))

    def test_the_page_says_what_is_missing(self):
        project = make_project()
        imported(project, SAME)
        checks = known(project, {"id": "ticket", "metadata": ["shop"]})
        manager = make_user("manager")
        add_members(project, manager, role=Role.MANAGER)
        client = browser_of(manager)
        page = client.post(
            reverse("annotation:add_checks", args=[project.slug]), {"dataset": checks.pk, "most": 5}, follow=True
        )
        assert "it lacks the column &#x27;url&#x27;" in page.content.decode()
        assert not GoldQuery.objects.exists()


class TestPool:
    def test_an_upload_that_differs_from_the_checks_in_use_is_refused_until_they_are_retired(self):
        project = make_project()
        assert made(project, known(project, {"id": "ticket"})) == 2
        with pytest.raises(InvalidUpload, match=r"hidden checks are in use .* it lacks the column 'url'"):
            imported(project, SAME)
        assert not Dataset.objects.filter(project=project, role="pool").exists()
        for check in GoldQuery.objects.all():
            gold.retire_check(check=check)
        assert imported(project, SAME).row_count == 3

    def test_a_further_upload_may_differ_while_the_checks_look_like_an_earlier_one(self):
        project = make_project()
        imported(project, SAME)
        assert made(project, known(project, SAME)) == 2
        assert imported(project, {}, word="later").row_count == 3

    def test_checks_behind_a_gate_keep_no_record(self):
        project = make_project(oracle="crowd", selection="uncertainty", normalizer="L0")
        assert made(project, known(project, {})) == 2
        assert imported(project, {}).row_count == 3

    def test_no_upload_comes_between_the_look_and_the_checks(self):
        """Whoever makes checks holds the project; an upload waits for them, then sees them."""
        project = make_project()
        checks = known(project, {})
        raised = []

        def upload():
            try:
                imported(project, SAME)
            except InvalidUpload as error:
                raised.append(str(error))
            finally:
                connection.close()

        with transaction.atomic():
            Project.objects.select_for_update(no_key=True).get(pk=project.pk)
            thread = Thread(target=upload)
            thread.start()
            thread.join(1)
            assert thread.is_alive()
            assert made(project, checks) == 2
        thread.join(120)
        assert len(raised) == 1
        assert "it lacks the id" in raised[0]
