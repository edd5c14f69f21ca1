"""An export imported into a real Label Studio server, and its own export read back.

Label Studio and what it needs are 1 GB, so it is used where LABEL_STUDIO names its program or the path holds it.
"""

import io
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from annotation.choices.label_types.catalogue import label_type_of
from annotation.data.readers.reading import Upload
from annotation.data.services.label_files import ExportFormat, export_labels
from dpal.reading.rows import Layout
from tests.factories import answer_next, asked_project, make_account

PROGRAM = os.environ.get("LABEL_STUDIO") or shutil.which("label-studio")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(PROGRAM is None, reason="label-studio is not installed: pip install label-studio"),
]
PERSON = {"email": "ann@example.org", "password": "secret-words-1"}
CLASSES = ["complaint: late", "-1", "praise, thanks"]
CONFIG = """<View><Text name="record" value="$text"/><Choices name="class" toName="record" choice="multiple">
{}</Choices></View>""".format("".join(f'<Choice value="{name}"/>' for name in CLASSES))
SETS = {"question_kind": "several", "labels_per_record": 2, "estimator": "label_sets", "training_delta": 1e-6}


@pytest.fixture(scope="module")
def studio(tmp_path_factory) -> Iterator["Studio"]:
    tmp_path: Path = tmp_path_factory.mktemp("label_studio")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [PROGRAM, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port)]
    command += ["--data-dir", tmp_path, "--username", PERSON["email"], "--password", PERSON["password"]]
    quiet = {"LATEST_VERSION_CHECK": "false", "COLLECT_ANALYTICS": "false", "SENTRY_DSN": "", "HOME": str(tmp_path)}
    site = f"http://127.0.0.1:{port}"
    with (tmp_path / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env={"PATH": os.environ["PATH"]} | quiet)
    try:
        until = time.monotonic() + 300
        while not _answers(f"{site}/health"):
            assert server.poll() is None, (tmp_path / "server.log").read_text()
            assert time.monotonic() < until, "Label Studio does not answer"
            time.sleep(1)
        yield Studio(site)
    finally:
        server.terminate()
        server.wait(timeout=30)


def _answers(address: str) -> bool:
    try:
        return requests.get(address, timeout=5).ok
    except requests.ConnectionError:
        return False


class Studio:
    """A person who is logged in; addresses are those below `/api/projects`."""

    def __init__(self, site: str) -> None:
        self.site, self.session = site, requests.Session()
        self.session.get(f"{site}/user/login", timeout=60)
        sent = PERSON | {"csrfmiddlewaretoken": self.session.cookies["csrftoken"]}
        assert self.session.post(f"{site}/user/login", sent, headers={"Referer": site}, timeout=60).ok

    def __call__(self, method: str, address: str = "", **sent: Any) -> requests.Response:
        headers = {"X-CSRFToken": self.session.cookies["csrftoken"], "Referer": self.site}
        return self.session.request(method, f"{self.site}/api/projects{address}", headers=headers, timeout=120, **sent)


@pytest.mark.parametrize("kind", ["choose", "several"])
def test_label_studio_takes_an_export_and_gives_the_same_labels_back(studio, kind):
    options = {} if kind == "choose" else {"pool_account": make_account(delta_limit=1e-4), **SETS}
    project, _, (person,) = asked_project(3, classes=CLASSES, **options)
    choices = [0, 1, 2] if kind == "choose" else [0b011, 0b100, 0b110]
    for choice in choices:
        answer_next(project, person, choice)
    sent = b"".join(export_labels(project=project, format=ExportFormat.LABEL_STUDIO))
    made = studio("POST", json={"title": "DPAL", "label_config": CONFIG})
    assert made.status_code == 201, made.text
    address = f"/{made.json()['id']}"
    taken = studio("POST", f"{address}/import", files={"file": ("labels.json", sent, "application/json")})
    assert (taken.status_code, taken.json()["task_count"], taken.json()["annotation_count"]) == (201, 3, 3), taken.text
    back = studio("GET", f"{address}/export?exportType=JSON").content
    sets = label_type_of(kind, project.settings) if kind == "several" else None
    layout = Layout(kind="text", text="text", label="class", classes=tuple(CLASSES), sets=sets)
    (batch,) = Upload(io.BytesIO(back), "export.json", layout, maximum_bytes=10**6).batches()
    assert batch.bad == []
    given = {label.query.record.text: label.choice for label in person.labels.select_related("query__record")}
    assert dict(zip(batch.texts, batch.labels, strict=True)) == given
