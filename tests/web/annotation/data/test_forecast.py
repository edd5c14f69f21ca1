import io
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotation.choices.policies import labels_of_first_model
from annotation.data.readers import forecast
from annotation.data.services import drafts
from annotation.models import Dataset, Job, Query, Role
from annotation.models.people import IdempotentAnswer
from learner.rounds.next_step import Step, project_status
from privacy.ledger.models import EntryKind, LedgerEntry
from tests import learning
from tests.clients import browser_of
from tests.factories import add_members, make_user
from tests.programs import Program

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("reads_here")]
MAPPING = {"has_header": "on", "quoting": "on", "delimiter": ",", "text": "text", "contributor": "contributor"}
FIELDS = {"role": "pool", "text_column": "text", "contributor_column": "contributor"}


def log(*, often: int) -> bytes:
    rows = [f"review {place},writer {place}" for place in range(40)]
    rows += [f"play song {text},person {text} {n}" for text in range(often) for n in range(100)]
    return "\n".join(["text,contributor", *rows]).encode()


FEW, ENOUGH = log(often=4), log(often=12)


@pytest.fixture
def crowd(owner):
    return learning.open_crowd(owner)


def stored(project):
    reserved = LedgerEntry.objects.filter(account=project.pool_account, kind=EntryKind.RESERVE).count()
    return Dataset.objects.count(), Job.objects.count(), reserved, IdempotentAnswer.objects.count()


def send(program, project, body, **fields):
    address = reverse("api:upload_dataset", args=[project.slug])
    return program.client.post(address, FIELDS | {"file": SimpleUploadedFile("log.csv", body)} | fields)


class TestRest:
    def test_too_few_are_refused_with_the_numbers_until_they_are_confirmed(self, crowd, owner):
        program = Program(owner, crowd)
        refused = send(program, crowd, FEW)
        answer = refused.json()
        assert refused.status_code == 422
        assert answer["errors"][0]["field"] == "confirm_few"
        assert answer["parameters"] == {"expected": pytest.approx(4, abs=0.01), "low": 3, "high": 5, "needed": 8} | {
            name: answer["parameters"][name] for name in ("low", "high")
        }
        assert stored(crowd) == (0, 0, 0, 0)
        assert send(program, crowd, FEW, confirm_few="true").status_code == 202
        assert Dataset.objects.count() == 1

    def test_a_slow_file_is_judged_by_what_was_counted_in_time(self, crowd, owner, monkeypatch):
        text = "\n".join(["text,contributor", *(f"review {n},writer {n}" for n in range(100_000))]).encode() + b"\n"
        late = text + ENOUGH.split(b"\n", 1)[1]
        assert not self.counted(crowd, late).is_too_little
        monkeypatch.setattr(forecast, "MOST_SECONDS", -1.0)
        found = self.counted(crowd, late)
        assert 0 < found.rows < 100_000
        assert not found.is_whole
        answer = send(Program(owner, crowd), crowd, late)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "confirm_few")

    def counted(self, project, body):
        mapping = {"text": "text", "contributor": "contributor"}
        file = SimpleUploadedFile("log.csv", body)
        return drafts.forecast_upload(project=project, file=file, name="log.csv", role="pool", mapping=mapping)

    def test_others_read_the_same_before_and_after(self, crowd, owner):
        """What refuses looked at private rows, so nobody else may see that it did."""
        people = {role: make_user() for role in (Role.MANAGER, Role.ENGINEER, Role.ANNOTATOR)}
        for role, person in people.items():
            add_members(crowd, person, role=role)

        def read():
            paths = ("datasets", "ledger", "next-step", "log", "models", "work")
            told = {(role, path): Program(one, crowd)("GET", path) for role, one in people.items() for path in paths}
            answers = {key: (answer.status_code, answer.content) for key, answer in told.items()}
            pages = [reverse("learner:overview", args=[crowd.slug]), reverse("annotation:data", args=[crowd.slug])]
            for role, person in people.items():
                web = browser_of(person)
                for page in pages:
                    answer = web.get(page)
                    content = re.sub(rb"(csrf|nonce)[^>]*", b"", answer.content)
                    answers[role, page] = (answer.status_code, content)
            return answers

        before = read()
        address = reverse("api:upload_dataset", args=[crowd.slug])
        program = Program(owner, crowd)
        fields = FIELDS | {"file": SimpleUploadedFile("log.csv", FEW)}
        refused = program.client.post(address, fields, headers={"Idempotency-Key": "k"})
        assert refused.status_code == 422
        assert stored(crowd) == (0, 0, 0, 0)
        after = read()
        assert after == before


class TestPage:
    def look(self, web, project, body):
        address = reverse("annotation:data", args=[project.slug])
        fields = {"role": "pool", "bad_rows": "keep_good", "has_header": "on", "look": "1"}
        answer = web.post(address, fields | {"file": SimpleUploadedFile("log.csv", body)})
        return answer.url, web.get(answer.url)

    def test_the_page_says_how_many_pass_and_asks_once_more(self, crowd, owner):
        web = browser_of(owner)
        address, page = self.look(web, crowd, FEW)
        shown = " ".join(page.content.decode().split())
        assert "About <strong>4 texts</strong> of this file will pass" in shown
        assert "The first model needs 8 texts." in shown
        assert 'name="confirm_few"' in shown
        agreed = MAPPING | {"upload": "1", "agreed": page.context["agreed"]}
        refused = web.post(address, agreed)
        assert refused.status_code == 422
        assert "Fewer texts would pass than the" in refused.content.decode()
        assert stored(crowd) == (0, 0, 0, 0)
        assert web.post(address, agreed | {"confirm_few": "1"}).status_code == 302
        assert Dataset.objects.count() == 1

    def test_an_upload_that_skips_the_look_is_refused_as_well(self, crowd, owner):
        web = browser_of(owner)
        _, page = self.look(web, crowd, FEW)
        fields = {"role": "pool", "bad_rows": "keep_good", "has_header": "on", "agreed": page.context["agreed"]}
        file = SimpleUploadedFile("log.csv", FEW)
        refused = web.post(reverse("annotation:data", args=[crowd.slug]), fields | {"file": file})
        assert refused.status_code == 422
        assert stored(crowd) == (0, 0, 0, 0)


def test_a_long_file_is_read_until_enough_pass(crowd, monkeypatch):
    monkeypatch.setattr(forecast, "FIRST_LOOK_ROWS", 500)
    mapping = {"text": "text", "contributor": "contributor", "has_header": True}

    def counted(most, body):
        monkeypatch.setattr(forecast, "MOST_ROWS", most)
        columns = zip(*(line.split(",") for line in body.decode().splitlines()[1:]), strict=True)
        kept = io.BytesIO()
        pq.write_table(
            pa.table(dict(zip(("text", "contributor"), map(list, columns), strict=True))), kept, row_group_size=100
        )
        file = SimpleUploadedFile("log.parquet", kept.getvalue())
        return drafts.forecast_upload(project=crowd, file=file, name="log.parquet", role="pool", mapping=mapping)

    enough = counted(10**6, log(often=40))
    assert (enough.rows, enough.is_whole, enough.is_too_little) == (1000, False, False)
    ended = counted(500, log(often=40))
    assert (ended.rows, ended.is_whole, ended.is_too_little) == (500, False, True)
    assert counted(10**6, FEW).is_whole


@pytest.mark.parametrize(("texts", "step"), [(7, Step.FEW_LABELS), (8, Step.TRAIN)])
def test_the_first_model_needs_what_training_waits_for(crowd, texts, step):
    learning.fill_crowd(crowd, texts=texts)
    assert Query.objects.count() == texts
    learning.work_off(crowd)
    learning.label_everything(crowd, make_user())
    assert project_status(crowd).step == step
    assert (texts >= labels_of_first_model(crowd.settings)) == (step == Step.TRAIN)
