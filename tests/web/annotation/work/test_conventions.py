import hashlib
import json
import os

import numpy as np
import pytest
from django.db import connection
from django.test import Client, RequestFactory

from annotation.models import Label, Role
from annotation.people.services import members
from annotation.work import ranges
from learner.errors import NotReleased
from learner.linear_model import LinearModel
from learner.models import ModelRelease, ReleaseState
from learner.pools.configuration import featurizer_of
from learner.releases import downloads, storage
from learner.releases.services import versions
from learner.rounds.services import suggestions
from tests import learning
from tests.clients import program_of
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def client_of(project, role: str) -> Client:
    person = make_user()
    members.add_member(project=project, user=person, role=role)
    return program_of(person)


@pytest.fixture
def project():
    opened = learning.open_trusted(make_user())
    learning.fill_trusted(opened)
    return opened


def problem(response, status: int) -> str:
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["status"] == status
    return response.json()["detail"]


def test_files_in_parts_and_predictions(project, settings):
    release = learning.run_to_release(project, make_user(), version=1)
    engineer = client_of(project, Role.ENGINEER)
    base = f"/api/v1/projects/{project.slug}/models"
    address = f"{base}/1/files/weights.json"
    latest = engineer.get(f"{base}/latest/files/weights.json")
    whole = engineer.get(address)
    body, tag = whole.getvalue(), whole["ETag"]
    assert (latest.getvalue(), latest["ETag"]) == (body, tag)
    assert (whole["Accept-Ranges"], whole["Content-Length"]) == ("bytes", str(len(body)))
    assert hashlib.sha256(body).hexdigest() == tag.strip('"')
    size = len(body)
    for asked, start, end in (("0-9", 0, 10), (f"{size - 3}-", size - 3, size), ("-5", size - 5, size), ("7-7", 7, 8)):
        part = engineer.get(address, headers={"Range": f"bytes={asked}"})
        assert (part.status_code, part.getvalue()) == (206, body[start:end]), asked
        assert part["Content-Range"] == f"bytes {start}-{end - 1}/{size}"
        assert part["Content-Length"] == str(end - start)
    assert engineer.get(address, headers={"Range": f"bytes=0-{size * 9}"}).getvalue() == body
    for asked in (f"{size}-", f"{size + 5}-{size + 9}", "-0"):
        beyond = engineer.get(address, headers={"Range": f"bytes={asked}"})
        assert (beyond.status_code, beyond["Content-Range"]) == (416, f"bytes */{size}"), asked
        problem(beyond, 416)
    for asked in ("bytes=-", "bytes=5-2", "bytes=0-1,3-4", "lines=1-2", "bytes=" + "9" * 40 + "-"):
        ignored = engineer.get(address, headers={"Range": asked})
        assert (ignored.status_code, ignored.getvalue()) == (200, body), asked
    # Another file, a weak tag or a time, none of which says that the bytes are the same.
    for other in ('"another"', f"W/{tag}", "Sat, 21 Nov 2026 10:00:00 GMT"):
        stale = engineer.get(address, headers={"Range": "bytes=0-9", "If-Range": other})
        assert (stale.status_code, stale.getvalue()) == (200, body)
    fresh = engineer.get(address, headers={"Range": "bytes=0-9", "If-Range": tag})
    assert (fresh.status_code, fresh.getvalue()) == (206, body[:10])
    for given in (tag, f"W/{tag}", "*"):
        assert engineer.get(address, headers={"If-None-Match": given}).status_code == 304

    said = {"texts": ["apple pear", "hammer saw", ""]}
    found = engineer.post(f"{base}/latest/predict", said, content_type="application/json").json()
    model = LinearModel.from_json(json.loads(body))
    X = featurizer_of(project).transform(said["texts"])
    assert found["labels"] == model.predict(X)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=1e-12)
    assert (found["version"], found["classes"]) == (1, learning.CLASSES)
    for wrong in ({}, {"rows": [{"a": 1}]}, {"texts": ["a"], "rows": [{}]}, {"texts": []}, {"texts": ["a"] * 1001}):
        detail = problem(engineer.post(f"{base}/1/predict", wrong, content_type="application/json"), 422)
        assert "apple" not in detail
    stranger, annotator = Client(), client_of(project, Role.ANNOTATOR)
    problem(stranger.post(f"{base}/1/predict", said, content_type="application/json"), 401)
    problem(annotator.post(f"{base}/1/predict", said, content_type="application/json"), 403)
    versions.retire_release(release=release, reason="wrong guidelines")
    retired = engineer.post(f"{base}/1/predict", said, content_type="application/json")
    assert "retired" in retired["Warning"]
    problem(engineer.post(f"{base}/latest/predict", said, content_type="application/json"), 404)

    for headers, status in (({}, 200), ({"Range": "bytes=0-9"}, 206), ({"If-None-Match": tag}, 304)):
        told = engineer.get(address, headers=headers)
        assert (told.status_code, "retired" in told["Warning"]) == (status, True)
        assert told.getvalue() == {200: body, 206: body[:10], 304: b""}[status]
    detail = engineer.get(f"{base}/1").json()
    assert (detail["state"], detail["retired_reason"]) == ("retired", "wrong guidelines")
    for absent in ("", "/files/weights.json"):
        problem(engineer.get(f"{base}/latest{absent}"), 404)

    # What was digested once is digested again when it changes, even if its size and its time stay.
    path = storage.folder_of(release) / "weights.json"
    times = path.stat()
    path.write_bytes(body.replace(b"1", b"2"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "digest" in problem(engineer.get(address, headers={"Range": "bytes=0-9"}), 500)

    settings.API_REQUESTS_PER_MINUTE = 3
    limited = client_of(project, Role.ENGINEER)
    answers = [limited.get(base) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    problem(answers[-1], 429)
    assert 1 <= int(answers[-1]["Retry-After"]) <= 60


def test_a_candidate_predicts_nothing(project):
    release = ModelRelease(project=project, version=1, state=ReleaseState.CANDIDATE)
    with pytest.raises(NotReleased):
        suggestions.predict_records(release=release, texts=["a"], rows=None)


@pytest.mark.parametrize(
    "rows", [[{"other": 1}], [{"amount": [1]}], [{"amount": {}}], [{"amount": 1}, {"amount": 1, "b": 2}]]
)
def test_rows_of_declared_columns_alone_are_predicted(rows):
    suggestions.refuse_undeclared_columns([{"amount": 1}, {"amount": None}, {}], declared=frozenset({"amount"}))
    with pytest.raises(suggestions.InputNotFitting) as refusal:
        suggestions.refuse_undeclared_columns(rows, declared=frozenset({"amount"}))
    assert "other" not in str(refusal.value).replace("others", "")


@pytest.mark.slow
def test_counting_a_request_waits_for_no_disk():
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE oid = 'annotation_ratecount'::regclass")
        assert cursor.fetchone() == ("u",)


def test_a_download_of_200_mebibytes_holds_one_block_at_a_time(tmp_path, monkeypatch):
    size = 200 * 2**20 + 5
    path = tmp_path / "model.onnx"
    with path.open("wb") as file:
        file.truncate(size)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    release = ModelRelease(
        version=1,
        state=ReleaseState.RELEASED,
        digests={"model.onnx": digest},
        folder=".",
        weights={"classes": []},
        features={"kind": "hashing"},
    )
    monkeypatch.setattr(storage, "_open_stored", lambda release, name: (tmp_path / name).open("rb"))
    opened, really_open = [], storage.open_file
    monkeypatch.setattr(storage, "open_file", lambda **given: opened.append(really_open(**given)) or opened[0])
    response = downloads.file_response(RequestFactory().get("/"), release, "model.onnx")
    read, (file,) = 0, opened
    for block in response:
        read += len(block)
        assert len(block) <= ranges.BLOCK_BYTES
        # Nothing is read before it is sent; what the processes of a running site hold is measured by the journey.
        assert file.closed or file.tell() == read
    assert (read, file.closed) == (size, True)


def test_lists_come_in_pages_that_lead_to_each_other(project):
    manager = client_of(project, Role.MANAGER)
    address = f"/api/v1/projects/{project.slug}/datasets"
    everything = manager.get(address)
    assert "Link" not in everything.headers
    names, following = [], f"{address}?limit=1"
    while following:
        page = manager.get(following)
        names += [row["id"] for row in page.json()]
        following = page.headers.get("Link", "").removeprefix("<http://testserver").split(">")[0]
    assert names == [row["id"] for row in everything.json()]
    assert len(names) == 2
    for query in ("limit=0", "limit=1001", "offset=-1", "limit=x"):
        problem(manager.get(f"{address}?{query}"), 422)


def test_a_write_sent_again_happens_once(project):
    learning.work_off(project)
    annotator = client_of(project, Role.ANNOTATOR)
    address = f"/api/v1/projects/{project.slug}/assignments"
    headers = {"Idempotency-Key": "one"}
    first, again = (annotator.post(address, headers=headers) for _ in range(2))
    assert first.json() == again.json()
    assert again["Idempotency-Replayed"] == "true"
    assert annotator.post(address, headers={"Idempotency-Key": "two"}).status_code == 200
    label = f"/api/v1/assignments/{first.json()['id']}/label"
    sent = {"content_type": "application/json", "headers": {"Idempotency-Key": "label"}}
    refused = annotator.post(label, {"choice": 99}, **sent)
    assert problem(refused, refused.status_code)
    labelled = annotator.post(label, {"choice": 0}, **sent)
    assert labelled.status_code == 200
    assert annotator.post(label, {"choice": 0}, **sent).json() == labelled.json()
    assert Label.objects.count() == 1
    assert "another request" in problem(annotator.post(label, {"choice": 1}, **sent), 422)
    assert problem(annotator.post(label, {"choice": 1}, **sent | {"headers": {"Idempotency-Key": "x" * 201}}), 422)
    # A key is its person's own.
    other = client_of(project, Role.ANNOTATOR)
    assert other.post(address, headers=headers).json() != first.json()


def test_an_upload_sent_again_is_stored_once(project):
    manager = client_of(project, Role.MANAGER)
    address = f"/api/v1/projects/{project.slug}/datasets"

    def send(content: bytes):
        path = learning.File(learning.io.BytesIO(content), name="pool.csv")
        return manager.post(address, {"file": path, "role": "pool"}, headers={"Idempotency-Key": "upload"})

    first, again = send(b"text\nhello\n"), send(b"text\nhello\n")
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    assert project.datasets.count() == 3
    problem(send(b"text\nother\n"), 422)
