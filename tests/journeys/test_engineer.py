"""An engineer with nothing but a token: the examples of docs/releases.md run as printed, forgeries are refused."""

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import requests

from annotation.models import Role
from annotation.services import projects, tokens
from dpal_site.embedded.servers import REPOSITORY
from learner.services import releases
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLE = re.compile(r"```(?:bash|python) file=(\S+)\n(.*?)```", re.DOTALL)
DOCUMENTED = dict(EXAMPLE.findall((REPOSITORY / "docs" / "releases.md").read_text(encoding="utf-8")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the examples where an engineer would run them."""
    for name, script in DOCUMENTED.items():
        (tmp_path / name).write_text(script, encoding="utf-8")
    return tmp_path


def run(name: str, folder: Path, known: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["bash", name] if name.endswith(".sh") else [sys.executable, "-W", "ignore", name]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **known}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_examples_run_as_printed_and_forgeries_are_refused(live_site, folder):
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    release = learning.run_to_release(project, make_user(), version=1)
    engineer = make_user()
    projects.add_member(project=project, user=engineer, role=Role.ENGINEER)
    token, secret = tokens.create_token(user=engineer, name="t", scopes=["models:read"], lifetime=timedelta(days=1))
    known = {
        "SITE": live_site.url,
        "PROJECT": project.slug,
        "TOKEN": secret,
        "PUBLIC_KEY": releases.signer().public_key,
    }
    said = {}
    for name in ("download.sh", "verify.py", "numpy_model.py", "use.py", "download.py", "predict.sh"):
        done = run(name, folder, known)
        assert done.returncode == 0, (name, done.stderr)
        said[name] = done.stdout
    assert set(said) == set(DOCUMENTED)
    assert said["verify.py"] == "genuine\n"
    assert said["download.py"] == "version 1 guarantee 20.0\n"
    assert '"labels"' in said["predict.sh"]
    assert {name: (folder / name).stat().st_size for name in release.digests} == {
        name: (releases.folder_of(release) / name).stat().st_size for name in release.digests
    }

    weights, signature = folder / "weights.json", folder / "manifest.sig"
    genuine = weights.read_bytes()
    weights.write_bytes(genuine.replace(b"0", b"1", 1))
    assert "weights.json was changed" in run("verify.py", folder, known).stderr
    weights.write_bytes(genuine)
    signed = signature.read_text()
    signature.write_text(
        re.sub(r'("signature": ")(.)', lambda found: found[1] + ("B" if found[2] == "A" else "A"), signed)
    )
    assert run("verify.py", folder, known).returncode != 0
    signature.write_text(signed)
    other = releases.Signer.from_secret("another secret of the test, long enough for a key").public_key
    assert run("verify.py", folder, known | {"PUBLIC_KEY": other}).returncode != 0
    assert run("verify.py", folder, known).returncode == 0

    # On the site itself, too: a changed file is a fault, a changed or revoked token opens nothing.
    address = f"{live_site.url}/api/v1/projects/{project.slug}/models/latest"
    changed = secret[:-1] + ("A" if secret[-1] != "A" else "B")
    for wrong in (changed, "", secret.upper()):
        assert requests.get(address, headers={"Authorization": f"Bearer {wrong}"}, timeout=30).status_code == 401
    headers = {"Authorization": f"Bearer {secret}"}
    (releases.folder_of(release) / "card.md").write_text("epsilon 0")
    broken = requests.get(f"{address}/files/card.md", headers=headers, timeout=30)
    assert (broken.status_code, broken.headers["Content-Type"]) == (500, "application/problem+json")
    # What the token was not made for stays closed.
    assert requests.get(f"{live_site.url}/api/v1/projects", headers=headers, timeout=30).status_code == 403
    tokens.revoke_token(token=token)
    assert requests.get(address, headers=headers, timeout=30).status_code == 401
