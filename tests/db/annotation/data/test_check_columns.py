"""Beside a hidden check stands what stands beside the pool's questions: other files make none, and are named why."""

import csv
import io
import re
from threading import Thread

import pytest
from django.db import connection, transaction

from annotation.data.services import datasets
from annotation.errors import InvalidConfiguration, InvalidUpload
from annotation.models import Dataset, DatasetState, Project
from annotation.models.quality import GoldQuery
from annotation.questions.services import checks as gold
from tests.factories import bring_file, make_project, make_user

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


class TestPool:
    def test_an_upload_that_differs_from_the_checks_in_use_is_refused_until_they_are_retired(self):
        project = make_project()
        assert made(project, known(project, {"id": "ticket"})) == 2
        with pytest.raises(InvalidUpload, match=r"hidden checks: it lacks the column 'url'"):
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
