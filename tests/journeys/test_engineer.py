import base64
import hashlib
import os
import re
import time
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
import requests
from django.core.management import CommandError, call_command
from django.db import transaction

from addons.webhooks import services as webhooks
from annotation.models import Role
from annotation.people.services import members
from annotation.work.services import tokens
from learner.models import ModelRelease, ReleaseState, TrainingRun
from learner.releases import storage
from learner.releases.services import checks, publishing
from tests import documented, learning, streaming
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
LARGE = 200 * 2**20
WITH_A_TOKEN = ("latest.sh", "download.sh", "verify.py", "numpy_model.py", "use.py", "predict.sh")
# tests/journeys/test_client_examples.py runs them where nothing but the client is installed.
WITH_THE_CLIENT = ("load.py", "guarantee.py", "terminal.sh", "batches.sh", "folder.py", "client.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documented.write_examples(tmp_path)
    return tmp_path


@pytest.fixture
def project():
    opened = learning.open_trusted(make_user())
    learning.fill_trusted(opened)
    return opened


def token_for(project, *scopes: str, role: str = Role.ENGINEER):
    person = make_user()
    members.add_member(project=project, user=person, role=role)
    return tokens.create_token(user=person, name="t", scopes=list(scopes), lifetime=timedelta(days=1))


def other_letter(text: str, place: int) -> str:
    """Return base64 text with another letter at a place, which never is one of the last bits that nobody reads."""
    return text[:place] + ("B" if text[place] == "A" else "A") + text[place + 1 :]


def test_no_example_goes_unrun():
    assert documented.unnamed() == []
    assert set(documented.examples()) == {
        *WITH_A_TOKEN,
        *WITH_THE_CLIENT,
        "check_message.py",
        "hub.py",  # tests/journeys/test_hub.py
        "post_records.sh",
    }


@pytest.mark.slow
def test_the_examples_run_as_printed_and_forgeries_are_refused(live_site, folder, project):
    release = learning.run_to_release(project, make_user(), version=1)
    token, secret = token_for(project, "models:read")
    known = {"SITE": live_site.url, "PROJECT": project.slug, "TOKEN": secret, "PUBLIC_KEY": storage.signer().public_key}
    # A download that broke off goes on where it stopped.
    begun = (storage.folder_of(release) / "model.onnx").read_bytes()[:100]
    (folder / "model.onnx.part").write_bytes(begun)
    said = {}
    for name in WITH_A_TOKEN:
        done = documented.run(name, folder, known)
        assert done.returncode == 0, (name, done.stderr)
        said[name] = done.stdout
    assert said["verify.py"] == "genuine\n"
    assert '"labels"' in said["predict.sh"]
    assert {name: (folder / name).stat().st_size for name in release.digests} == {
        name: (storage.folder_of(release) / name).stat().st_size for name in release.digests
    }

    assert (folder / "model.onnx").read_bytes().startswith(begun)

    # A file, the list of files, and the signature, each changed; then another site's key.
    for name in ("weights.json", "model.onnx", "manifest.json"):
        path = folder / name
        genuine = path.read_bytes()
        path.write_bytes(genuine[:-1] + bytes([genuine[-1] ^ 1]))
        refused = documented.run("verify.py", folder, known)
        assert refused.returncode != 0, name
        assert name == "manifest.json" or f"{name} was changed" in refused.stderr
        path.write_bytes(genuine)
    signature = folder / "manifest.sig"
    signed = signature.read_text()
    signature.write_text(re.sub(r'(?<="signature": ")[^"]+', lambda found: other_letter(found[0], 5), signed))
    assert "InvalidSignature" in documented.run("verify.py", folder, known).stderr
    signature.write_text(signed)
    other = storage.Signer.from_secret("another secret of the test, long enough for a key").public_key
    assert documented.run("verify.py", folder, known | {"PUBLIC_KEY": other}).returncode != 0
    assert documented.run("verify.py", folder, known).returncode == 0

    # On the site itself, too: a changed file is a fault, a changed or revoked token opens nothing.
    address = f"{live_site.url}/api/v1/projects/{project.slug}/models/latest"
    for wrong in (other_letter(secret, len(secret) - 1), other_letter(secret, 9), "", secret.upper(), secret[:-1]):
        assert requests.get(address, headers={"Authorization": f"Bearer {wrong}"}, timeout=120).status_code == 401
    assert documented.run("latest.sh", folder, known | {"TOKEN": other_letter(secret, 9)}).returncode != 0
    headers = {"Authorization": f"Bearer {secret}"}
    (storage.folder_of(release) / "card.md").write_text("epsilon 0")
    broken = requests.get(f"{address}/files/card.md", headers=headers, timeout=120)
    assert (broken.status_code, broken.headers["Content-Type"]) == (500, "application/problem+json")
    # What the token was not made for stays closed.
    assert requests.get(f"{live_site.url}/api/v1/projects", headers=headers, timeout=120).status_code == 403
    download_of_200_mebibytes(live_site, project, release, secret)
    tokens.revoke_token(token=token)
    assert requests.get(address, headers=headers, timeout=120).status_code == 401


def download_of_200_mebibytes(site, project, release, secret: str) -> None:
    folder = storage.folder_of(release).with_name("large")
    folder.mkdir()
    with (folder / "model.onnx").open("wb") as file:
        file.truncate(LARGE)
    with (folder / "model.onnx").open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    run = TrainingRun.objects.create(project=project, version=9, state="done", last_consensus_id=0, labels_used=0)
    values = {field.attname: getattr(release, field.attname) for field in ModelRelease._meta.concrete_fields}
    values |= {"id": None, "version": 9, "training_run_id": run.pk, "digests": {"model.onnx": digest}}
    values |= {"folder": release.folder.replace("/1", "/large"), "entry_id": learning.entries(project, "reserve")[0].pk}
    with transaction.atomic():
        publishing.print_limits(ModelRelease.objects.create(**values), [project.pool_account])
    address = f"{site.url}/api/v1/projects/{project.slug}/models/latest/files/model.onnx"
    headers = {"Authorization": f"Bearer {secret}"}
    # Every process reads its code with its first request, which takes more memory than any download.
    for _ in range(200):
        tail = requests.get(address, headers=headers | {"Range": "bytes=-5"}, timeout=120)
        assert (tail.status_code, tail.content) == (206, bytes(5))
        before = memory_of(site)
        if min(before.values()) > 0.7 * max(before.values()):
            break
    most, read = 0, 0
    with requests.get(address, headers=headers, stream=True, timeout=120) as answer:
        assert answer.headers["ETag"] == f'"{digest}"'
        assert int(answer.headers["Content-Length"]) == LARGE
        for place, block in enumerate(answer.iter_content(2**20)):
            read += len(block)
            if place % 20 == 0:
                most = max(most, *(memory - before[process] for process, memory in memory_of(site).items()))
    assert read == LARGE
    assert most < 32 * 2**20


def memory_of(site) -> dict[str, int]:
    master = site.pid("web")
    children = Path(f"/proc/{master}/task/{master}/children").read_text().split()
    assert children
    size = os.sysconf("SC_PAGE_SIZE")
    return {child: int(Path(f"/proc/{child}/statm").read_text().split()[1]) * size for child in children}


def test_records_are_posted_as_printed(live_server, folder):
    stream = streaming.open_stream(make_user())
    _, secret = token_for(stream, "datasets:write", role=Role.MANAGER)
    known = {"SITE": live_server.url, "PROJECT": stream.slug, "TOKEN": secret}
    done = [documented.run("post_records.sh", folder, known) for _ in range(2)]
    assert [one.stdout for one in done] == ['{"accepted": 2, "first_slot": 0}'] * 2, done[0].stderr


def test_a_message_is_checked_as_printed(folder):
    body, now = b'{"event": "release"}', int(time.time())
    right, wrong = ("whsec_" + base64.b64encode(key * 8).decode() for key in (b"righ", b"wron"))

    def header(moment):
        return webhooks.signature(secret=right, message_id="msg_1", moment=moment, body=body)

    known = {
        "WEBHOOK_SECRET": right,
        "WEBHOOK_ID": "msg_1",
        "WEBHOOK_TIMESTAMP": str(now),
        "WEBHOOK_SIGNATURE": f"v1,bm9uZQ== {header(now)}",
    }
    assert documented.run("check_message.py", folder, known, sent=body).stdout == "genuine\n"
    for change, sent in (
        ({"WEBHOOK_SECRET": wrong}, body),
        ({"WEBHOOK_ID": "msg_2"}, body),
        ({"WEBHOOK_TIMESTAMP": str(now - 1)}, body),
        ({"WEBHOOK_TIMESTAMP": str(now - 600), "WEBHOOK_SIGNATURE": header(now - 600)}, body),
        ({}, body + b" "),
    ):
        refused = documented.run("check_message.py", folder, known | change, sent=sent)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "forged, changed or old" in refused.stderr


def test_after_a_changed_ledger_entry_nothing_more_is_offered(live_server, project, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(checks, "check_release", lambda **_: None)
        release = learning.run_to_release(project, make_user(), version=1)
    _, secret = token_for(project, "models:read")
    address, headers = f"{live_server.url}/api/v1/projects/{project.slug}/models", {"Authorization": f"Bearer {secret}"}
    before = learning.rewrite_entry(release.entry.parent_id, purpose="another")
    with pytest.raises(CommandError, match="differ"):
        call_command("audit_ledger", stdout=StringIO(), stderr=StringIO())
    assert checks.check_release(release_id=release.pk).state == ReleaseState.CANDIDATE
    model = requests.get(f"{address}/1", headers=headers, timeout=120).json()
    assert model["state"] == "candidate"
    assert "difference" in model["held_back"]
    refused = requests.get(f"{address}/1/files/weights.json", headers=headers, timeout=120)
    assert (refused.status_code, refused.headers["Content-Type"]) == (409, "application/problem+json")
    assert requests.post(f"{address}/1/predict", json={"texts": ["a"]}, headers=headers, timeout=120).status_code == 409
    assert requests.get(f"{address}/latest", headers=headers, timeout=120).status_code == 404
    # Put back as it was, the entry is again what its hash says, and the release is offered.
    learning.rewrite_entry(release.entry.parent_id, purpose=before)
    call_command("audit_ledger", stdout=StringIO())
    assert checks.check_release(release_id=release.pk).state == ReleaseState.RELEASED
    assert requests.get(f"{address}/latest/files/weights.json", headers=headers, timeout=120).status_code == 200
