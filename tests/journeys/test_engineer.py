import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
import requests
from django.core.management import CommandError, call_command
from django.db import transaction

import dpal
from addons.webhooks import services as webhooks
from annotation.models import Role
from annotation.people.services import members
from annotation.work.services import tokens
from dpal_site.embedded.servers import REPOSITORY
from learner.models import ModelRelease, ReleaseState, TrainingRun
from learner.releases import storage
from learner.releases.services import checks, publishing, versions
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
        "hub.py",  # tests/journeys/test_engineer.py
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


CLIENT = REPOSITORY / "client" / "src"
# The address is read when the library is imported, so each case is a program of its own.
PROGRAM = """
import json, sys
import huggingface_hub
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
wanted = json.loads(sys.argv[1])
try:
    call = wanted.pop("call")
    place = huggingface_hub if hasattr(huggingface_hub, call) else huggingface_hub.HfApi()
    found = getattr(place, call)(**wanted)
    told = {
        "list_models": lambda: [[one.id, one.sha] for one in found],
        "list_repo_refs": lambda: [[one.name, one.target_commit] for one in (*found.branches, *found.tags)],
        "list_repo_commits": lambda: [[one.title, one.commit_id] for one in found],
        "model_info": lambda: {"sha": found.sha, "id": found.id},
    }
    print(json.dumps(told[call]() if call in told else found))
except (HfHubHTTPError, LocalEntryNotFoundError) as error:
    print(json.dumps({"error": type(error).__name__, "said": str(error)}))
"""


def token_of(project, *scopes: str, role: str = Role.ENGINEER) -> str:
    person = make_user()
    members.add_member(project=project, user=person, role=role)
    return tokens.create_token(user=person, name="t", scopes=list(scopes), lifetime=timedelta(days=1))[1]


@pytest.mark.slow
def test_a_snapshot_is_the_release_and_what_is_not_allowed_is_not_sent(live_server, project, tmp_path):
    release = learning.run_to_release(project, make_user(), version=1)
    secret, without = token_of(project, "models:read"), token_of(project, "ledger:read")
    annotator = token_of(project, "models:read", role=Role.ANNOTATOR)
    repository = f"dpal/{project.slug}"

    def hub(call: str, token: str = secret, **given: str):
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "HF_ENDPOINT": live_server.url,
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        named = {} if call == "list_models" else {"repo_id": repository}
        wanted = {"call": call, "token": token, **named, **given}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(wanted)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    folder = Path(hub("snapshot_download"))
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert found == {**release.digests, "README.md": release.digests["card.md"]}
    model = dpal.open_folder(folder, public_key=storage.signer().public_key)
    assert (model.project, model.version) == (project.slug, 1)
    # A commit names these bytes for good.
    told = hub("model_info")
    assert told == {"id": repository, "sha": folder.name}
    assert hub("list_models") == hub("list_models", search=project.slug) == [[repository, told["sha"]]]
    assert hub("list_models", search="another") == hub("list_models", token=annotator) == []
    assert hub("list_repo_refs") == [["main", told["sha"]], ["v1", told["sha"]]]
    assert hub("list_repo_commits") == [["Version 1", told["sha"]]]
    for revision in ("1", "v1", told["sha"], "latest"):
        assert Path(hub("snapshot_download", revision=revision)) == folder
    one = Path(hub("hf_hub_download", filename="README.md", cache_dir=str(tmp_path / "other")))
    assert one.read_text().startswith("---\n")
    assert [path.name for path in (tmp_path / "other").rglob("blobs/*")] == [release.digests["card.md"]]

    documented.write_examples(tmp_path)
    known = {"PROJECT": project.slug, "TOKEN": secret, "PUBLIC_KEY": storage.signer().public_key}
    known |= {"HF_ENDPOINT": live_server.url, "HF_HUB_DISABLE_TELEMETRY": "1", "PYTHONPATH": str(CLIENT)}
    printed = documented.run("hub.py", tmp_path, known)
    assert printed.stdout in ("['fruit']\n", "['tool']\n"), printed.stderr

    assert hub("model_info", revision="7")["error"] == "RevisionNotFoundError"
    assert hub("model_info", revision="0" * 40)["error"] == "RevisionNotFoundError"
    assert hub("hf_hub_download", filename="pickle.bin")["error"] == "RemoteEntryNotFoundError"
    assert hub("model_info", token=annotator)["error"] == "RepositoryNotFoundError"
    assert "401" in hub("model_info", token="dpal_wrong")["said"]
    refused = hub("model_info", token=without)
    assert "lacks the scope models:read" in refused["said"]
    empty = tmp_path / "empty"
    assert "error" in hub("snapshot_download", token=without, cache_dir=str(empty))
    assert not [path for path in empty.rglob("*") if path.is_file()]

    versions.retire_release(release=release, reason="Wrong guidelines.")
    assert hub("model_info")["error"] == "RevisionNotFoundError"
    assert Path(hub("snapshot_download", revision="v1")) == folder


def test_files_have_no_other_way_out(live_server, project):
    release = learning.run_to_release(project, make_user(), version=1)
    address = f"{live_server.url}/dpal/{project.slug}/resolve/main/weights.json"
    secret = token_of(project, "models:read")
    known = {"Authorization": f"Bearer {secret}"}
    head = requests.head(address, headers=known, timeout=120)
    assert head.headers["ETag"] == f'"{release.digests["weights.json"]}"'
    assert int(head.headers["Content-Length"]) == len(requests.get(address, headers=known, timeout=120).content)
    part = requests.get(address, headers={**known, "Range": "bytes=5-9"}, timeout=120)
    assert (part.status_code, len(part.content)) == (206, 5)
    assert requests.post(address, headers=known, timeout=120).status_code in (403, 405)
    for route in (
        address,
        f"{live_server.url}/api/models/dpal/{project.slug}",
        f"{live_server.url}/api/models/dpal/{project.slug}/revision/main",
        f"{live_server.url}/api/models/dpal/{project.slug}/tree/main",
    ):
        assert requests.get(route, timeout=120).status_code == 401
        assert requests.get(route, headers=known, timeout=120).status_code == 200
    # A person who is logged in has no token.
    assert requests.get(address, headers={"Cookie": "sessionid=x"}, timeout=120).status_code == 401
