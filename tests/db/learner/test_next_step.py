import io

import pytest
from django.core.files import File
from django.utils import translation

from annotation.data.services import datasets
from annotation.gates import services as gates
from annotation.wording import localized
from learner.rounds.next_step import Step, project_status
from learner.simulation.forecast import forecast_of
from tests import learning
from tests.factories import make_user, receive_upload

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project():
    return learning.open_crowd(make_user())


def receive(project):
    """Take an upload in which 120 people say the same, which passes but with 1e-13, and read none of it yet."""
    lines = ["text,contributor", *(f"apple pear,person {number}" for number in range(120))]
    return receive_upload(
        project=project,
        file=File(io.BytesIO("\n".join(lines).encode()), name="rows.csv"),
        name="rows.csv",
        mapping={"text": "text", "contributor": "contributor"},
        send=False,
    )


def test_an_upload_is_read_then_at_the_gate_and_what_passed_is_asked_about(project):
    assert project_status(project).step == Step.WAITING_FOR_POOL
    dataset = receive(project)
    assert project_status(project).step == Step.READING
    datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    at_gate = project_status(project)
    assert at_gate.step == Step.AT_GATE
    assert str(at_gate.sentence) == "An upload is being read; questions follow."
    with translation.override("de"):
        assert localized(at_gate.sentence).startswith("Ein Upload")
    gates.run_gate(job_id=dataset.gate_job_id)
    assert project_status(project).step == Step.ASK


def test_a_gate_that_let_nothing_through_is_left_and_the_project_waits_for_another_upload(project):
    learning.upload(project, [["apple pear", "ann"]], ["text", "contributor"])
    assert project_status(project).step == Step.WAITING_FOR_POOL


def test_a_version_is_promised_only_where_enough_questions_are_left_for_it():
    project = learning.open_crowd(make_user(), labels_per_release=12, repeat_votes=False)
    learning.fill_crowd(project, texts=20)
    learning.run_to_release(project, make_user(), version=1)
    learning.work_off(project)
    last = project_status(project)
    assert last.step == Step.LABELLING
    assert str(last.sentence) == (
        "4 questions are open; too few are left for version 2, which learns from 12 by itself. Upload more, or train "
        "it on fewer when all are done."
    )
    assert str(forecast_of(project).sentence) == "No further model by itself: too few questions are left."
    learning.label_everything(project, make_user())
    assert project_status(project).step == Step.FEW_LABELS


def test_a_version_is_promised_where_questions_of_a_later_round_are_enough_for_it():
    project = learning.open_crowd(make_user(), labels_per_release=12, repeat_votes=False)
    learning.fill_crowd(project, texts=20)
    learning.work_off(project)
    assert str(project_status(project).sentence) == (
        "8 questions are open; when 12 more are done, version 1 is trained."
    )
    assert "1 more model fits" in str(forecast_of(project).sentence)
