import hashlib
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import requests

import dpal
from annotation.models import Role
from annotation.people.services import members
from annotation.work.services import tokens
from dpal_site.embedded.servers import REPOSITORY
from learner.releases import storage
from learner.releases.services import versions
from tests import documented, learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
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


@pytest.fixture
def project():
    opened = learning.open_trusted(make_user())
    learning.fill_trusted(opened)
    return opened


def token_for(project, *scopes: str, role: str = Role.ENGINEER) -> str:
    person = make_user()
    members.add_member(project=project, user=person, role=role)
    return tokens.create_token(user=person, name="t", scopes=list(scopes), lifetime=timedelta(days=1))[1]


@pytest.mark.slow
def test_a_snapshot_is_the_release_and_what_is_not_allowed_is_not_sent(live_server, project, tmp_path):
    release = learning.run_to_release(project, make_user(), version=1)
    secret, without = token_for(project, "models:read"), token_for(project, "ledger:read")
    annotator = token_for(project, "models:read", role=Role.ANNOTATOR)
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
    secret = token_for(project, "models:read")
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
