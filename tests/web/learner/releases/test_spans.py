"""Spans by REST: from a file of made-up messages to a released model."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotation.data.services import datasets
from annotation.models import Dataset, Project, Role
from annotation.people.services import members
from learner.models import ModelRelease
from learner.pools import records
from learner.rounds.services import selection as rounds
from tests import learning
from tests.clients import program_of
from tests.factories import make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]
DAYS, NAMES = ("monday", "friday", "tomorrow"), ("Anna", "Peter Pan", "Olga")
SENTENCES = ("please call {} on {}", "is {} here on {}", "tell {} what is due {}")


def message(place, of):
    name, day = NAMES[place % 3], DAYS[place // 3 % 3]
    text = f"{SENTENCES[place // 9 % 3].format(name, day)} {place} of {of}"
    found = [(text.index(word), word, kind) for word, kind in ((name, "name"), (day, "day"))]
    return {"text": text, "spans": [{"start": at, "end": at + len(word), "label": kind} for at, word, kind in found]}


def send(program, project, rows, **form):
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path = f"/api/v1/projects/{project.slug}/datasets"
    answer = program.post(path, {"file": SimpleUploadedFile("rows.jsonl", body), **form})
    assert answer.status_code == 202, answer.content
    dataset = Dataset.objects.latest("pk")
    datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    assert dataset.state == "ready", dataset.job.error


@pytest.mark.parametrize("selection", ["secret_sample", "random"])
def test_from_a_file_to_a_model(selection):
    manager = make_user(is_superuser=True)
    program, annotator = program_of(manager), program_of(person := make_user())
    settings = {
        "name": "Calls",
        "question": "Who, and when?",
        "classes": ["name", "day"],
        "question_kind": "spans",
        "selection": selection,
        "pool_epsilon": 40.0,
        "class_descriptions": ["name: please call {Anna|Olga}"],
    }
    body = {"format": "dpal-configuration", "format_version": 1, "preset": "pool-experts", "settings": settings}
    opened = program.post("/api/v1/projects", json.dumps(body), content_type="application/json")
    assert opened.status_code == 201, opened.content
    project = Project.objects.get()
    assert project.estimator == "span_crf"
    members.add_member(project=project, user=person, role=Role.ANNOTATOR)
    send(program, project, [{"text": message(place, "pool")["text"]} for place in range(150)])
    send(program, project, [message(place, "test") for place in range(40)], role="public_test", label_column="spans")
    api = f"/api/v1/projects/{project.slug}"
    for _round in range(20):
        learning.work_off(project, version=1)
        if ModelRelease.objects.filter(project=project).exists():
            break
        while (held := annotator.post(f"{api}/assignments")).status_code == 200:
            task = held.json()
            place = int(task["text"].split()[-3])
            spans = [{**span, "type": span["label"]} for span in message(place, "pool")["spans"]]
            said = [{name: span[name] for name in ("start", "end", "type")} for span in spans]
            answer = annotator.post(
                f"/api/v1/assignments/{task['id']}/label",
                json.dumps({"spans": said}),
                content_type="application/json",
            )
            assert answer.status_code == 200, answer.content
        if selection == "secret_sample" and records.open_block(project):
            rounds.close_block(project=project)
    release = ModelRelease.objects.get(project=project)
    assert (release.state, release.held_back) == ("released", "")
    measured = program.get(f"{api}/models/1").json()["evaluations"][0]
    assert measured["examples"] == 40
    name, day = measured["measures"]["f1"]
    assert (name["spans"], day["spans"]) == (40, 40)
    for one in (name, day, measured["measures"]["micro_f1"]):
        assert 0.5 < one["low"] <= one["value"] <= one["high"] <= 1
