import io

import pytest
from django.core.files import File
from django.utils import translation

from annotation.data.services import datasets
from annotation.gates import services as gates
from annotation.wording import localized
from learner.rounds.next_step import Step, project_status
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
    assert str(at_gate.sentence) == "An upload goes through the gate; what passes is asked about."
    with translation.override("de"):
        assert localized(at_gate.sentence).startswith("Ein Upload")
    gates.run_gate(job_id=dataset.gate_job_id)
    assert project_status(project).step == Step.ASK


def test_a_gate_that_let_nothing_through_is_left_and_the_project_waits_for_another_upload(project):
    learning.upload(project, [["apple pear", "ann"]], ["text", "contributor"])
    assert project_status(project).step == Step.WAITING_FOR_POOL
