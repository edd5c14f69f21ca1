import hashlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from django.core.management import call_command
from django.db import connections

from annotation.models import Dataset, Label
from dpal_site.embedded import host
from dpal_site.embedded.processes import CELERY
from dpal_site.environment import storage_settings
from learner.models import FeatureMatrix, ModelRelease
from privacy.ledger.counter_objects import counter_objects
from tests import learning
from tests.counting import IDENTITY
from tests.factories import make_user
from tests.faults.storm.stage import _person as token_of

pytestmark = [pytest.mark.faults, pytest.mark.hosts, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PATIENCE_SECONDS = 300


class Site:
    def __init__(self, url, token):
        self.url, self._headers = f"{url}/api/v1", {"Authorization": f"Bearer {token}"}

    def post(self, path, **given):
        return requests.post(f"{self.url}/{path}", headers=self._headers, timeout=60, **given)

    def get(self, path, **headers):
        return requests.get(f"{self.url}/{path}", headers=self._headers | headers, timeout=60)


def label_until_released(site, slug, *, enough):
    """Answer whatever is asked; return how many answers were taken once there is a release."""
    answered = 0
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end and not enough():
        question = site.post(f"projects/{slug}/assignments")
        if question.status_code != 200:
            assert question.status_code == 204, question.text
            time.sleep(0.3)
            continue
        choice = learning.truth_of(question.json()["text"])
        answer = site.post(f"assignments/{question.json()['id']}/label", json={"choice": choice})
        assert answer.status_code == 200, answer.text
        answered += 1
    return answered


def share_the_counter(store, url, settings, monkeypatch):
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    settings.LEDGER_COUNTER_URL = url
    settings.STORAGES = settings.STORAGES | {"ledger_counter": storage_settings(url)}
    counter_objects.cache_clear()
    counter_objects().begin(IDENTITY.hex, {})


def test_what_one_host_writes_another_reads(
    collected_static_files, supervisor, pooler, store, bucket, tmp_path, settings, monkeypatch
):
    counted = store.url(store.make_bucket())
    shared = store.environment | {"STORAGE_URL": store.url(bucket), "DATABASE_POOLER": "transaction"}
    shared["LEDGER_COUNTER_URL"] = counted
    share_the_counter(store, counted, settings, monkeypatch)
    shared |= {"CANARY_TRIALS": "40", "API_REQUESTS_PER_MINUTE": "1000000", "WORK_LEASE_SECONDS": "3"}
    folders = {name: tmp_path / name for name in ("pages", "work")}
    left = {
        name: folder / "file-copies" / "files" / "features" / "1" / "gone.npy@00" for name, folder in folders.items()
    }
    for copy in left.values():
        copy.parent.mkdir(parents=True)
        copy.write_bytes(b"deleted while this host stood still")
    pages = shared | {"DPAL_VAR": str(folders["pages"]), "DATABASE_URL": pooler.web_url}
    pages |= {"DPAL_STATIC": str(settings.STATIC_ROOT)}
    work = shared | {"DPAL_VAR": str(folders["work"]), "DATABASE_URL": pooler.url}
    supervisor._start_server("web", host.free_port(), 2, pages)
    url = supervisor._urls[-1]
    supervisor.start("worker", [*CELERY, "worker", "--concurrency", "2", "--loglevel", "INFO"], work)
    supervisor.start("beat", [*CELERY, "beat", "--pidfile", "", "--loglevel", "INFO"], work)
    supervisor.wait_until_ready(PATIENCE_SECONDS)
    assert host.wait_until(lambda: not any(copy.exists() for copy in left.values()), PATIENCE_SECONDS)

    project = learning.open_trusted(make_user(), overlap=1, training_epsilon=100.0, pool_epsilon=400.0)
    manager = Site(url, token_of(project, "manager"))
    people = [Site(url, token_of(project, "annotator")) for _ in range(2)]
    tested = [f"{text},{learning.CLASSES[learning.truth_of(text)]}" for text in learning.sentences(60, seed=2)]
    files = {"pool": ["text", *learning.sentences(200)], "public_test": ["text,label", *tested]}
    for role, lines in files.items():
        form = {"role": role, "text_column": "text"} | ({"label_column": "label"} if role != "pool" else {})
        body = "\n".join(lines).encode()
        answer = manager.post(f"projects/{project.slug}/datasets", files={"file": ("a.csv", body)}, data=form)
        assert answer.status_code == 202, answer.text

    def released():
        return manager.get(f"projects/{project.slug}/models/latest").status_code == 200

    with ThreadPoolExecutor(2) as threads:
        answered = list(threads.map(lambda who: label_until_released(who, project.slug, enough=released), people))
    assert released(), [host.tail(supervisor.log_path(name)) for name in ("web", "worker")]
    assert Label.objects.count() == sum(answered) >= 12
    release = ModelRelease.objects.get(project=project, version=1)
    for name, digest in release.digests.items():
        sent = manager.get(f"projects/{project.slug}/models/1/files/{name}")
        assert (sent.status_code, hashlib.sha256(sent.content).hexdigest()) == (200, digest)
    part = manager.get(f"projects/{project.slug}/models/1/files/weights.json", Range="bytes=1-3")
    assert (part.status_code, len(part.content)) == (206, 3)
    # Who may not read the project gets nothing, and the store nobody at all.
    assert Site(url, "none").get(f"projects/{project.slug}/models/1/files/weights.json").status_code == 401
    stored = store.keys(bucket)
    assert requests.get(f"{store.endpoint}/{bucket}/{stored[0]}", timeout=60).status_code >= 400
    # What was uploaded is gone once it is read; features and releases stay, and copies lie where they are used.
    assert not [key for key in stored if "/upload" in key]
    assert {f"site/{name}" for name in FeatureMatrix.objects.values_list("file", flat=True)} <= set(stored)
    assert {f"site/{release.folder}/{name}" for name in release.digests} <= set(stored)
    copied = {
        name: {path.name.partition("@")[0] for path in (folder / "file-copies").rglob("*@*")}
        for name, folder in folders.items()
    }
    assert copied["pages"] == set(release.digests)
    assert any(name.endswith(".npy") for name in copied["work"])
    for folder in folders.values():
        assert not (folder / "storage").exists()
    assert Dataset.objects.filter(state="ready").count() == 2
    ready = requests.get(f"{url}/readyz", timeout=60)
    assert (ready.status_code, "storage: ok" in ready.text) == (200, True), ready.text
    connections.close_all()
    # There is one counter, and no host has one of its own.
    call_command("audit_ledger", verbosity=0)
    assert not [path for folder in folders.values() for path in folder.glob("ledger-counter*")]
    counter_objects.cache_clear()
