"""A release pushed into a tracking server of MLflow, and loaded from its registry by MLflow's own client.

MLflow and what it needs are 620 MB, so they live in an environment of the test's own, which needs a package index; what
is quick is in tests/pure/client/test_mlflow_model.py.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import requests

from annotation.models import Role
from annotation.people.services import members
from annotation.work.services import tokens
from dpal_site.embedded.servers import REPOSITORY
from learner.releases import storage
from tests import learning
from tests.clean import UV
from tests.factories import make_user

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
TEXTS = ["an example", "a pear, or a hammer?", "apple saw"]
# How this machine reaches a package index: addresses, certificates and proxies.
NETWORK = ("PIP_", "UV_", "SSL_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE")
LOADED = """
import json, sys
import mlflow, pandas
model = mlflow.pyfunc.load_model(sys.argv[1])
frame = pandas.DataFrame({"text": json.loads(sys.argv[2])})
shares = model.predict(frame, params={"probabilities": True})
print(json.dumps([model.predict(frame).tolist(), shares.tolist(), model.metadata.metadata]))
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mlflow")
    python = folder / "environment" / "bin" / "python"
    lock = REPOSITORY / "tests" / "mlflow.lock.txt"
    for arguments in (
        ("build", "--quiet", "--wheel", "--out-dir", folder / "wheel", REPOSITORY / "client"),
        ("venv", "--quiet", "--python", sys.executable, folder / "environment"),
        ("pip", "install", "--quiet", "--python", python, "--require-hashes", "--requirement", lock),
        ("pip", "install", "--quiet", "--python", python, "--find-links", folder / "wheel", "dpal-client[mlflow]"),
    ):
        done = subprocess.run([UV, *arguments], capture_output=True, text=True, check=False, timeout=900)
        assert done.returncode == 0, done.stderr
    return python.parent


@contextmanager
def serving(*command: str | Path, health: str, cwd: Path, environment: dict[str, str]) -> Iterator[str]:
    """Run a program that listens on `--port`, and yield its address once it is healthy."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    log = cwd / f"{address.partition(':')[2]}.log"
    with log.open("w") as output:
        running = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", address.partition(":")[2]],
            cwd=cwd,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        for _ in range(900):
            assert running.poll() is None, log.read_text()
            try:
                if requests.get(f"http://{address}/{health}", timeout=5).ok:
                    break
            except requests.RequestException:
                time.sleep(0.2)
        else:
            pytest.fail(log.read_text())
        yield address
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait(120)


@pytest.fixture
def server(programs, tmp_path) -> Iterator[str]:
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    command = [programs / "mlflow", "server", "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{tmp_path}/mlflow.db", "--artifacts-destination", tmp_path / "kept"]
    with serving(*command, health="health", cwd=tmp_path, environment=environment) as address:
        yield address


def test_a_release_goes_through_a_registry(live_server, programs, server, tmp_path):
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=1)
    engineer = make_user()
    members.add_member(project=project, user=engineer, role=Role.ENGINEER)
    secret = tokens.create_token(user=engineer, name="t", scopes=["models:read"], lifetime=timedelta(days=1))[1]
    environment = {name: value for name, value in os.environ.items() if name.upper().startswith(NETWORK)} | {
        "PATH": f"{programs}:{Path(UV).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "DPAL_SITE": live_server.url,
        "DPAL_TOKEN": secret,
        "MLFLOW_TRACKING_URI": f"http://{server}",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DPAL_PUBLIC_KEY": storage.signer().public_key,
    }

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=900
        )

    pushed = run("dpal", "push", project.slug, f"mlflow://{server}/fruit")
    assert pushed.stdout == f"Version 1 of {project.slug} is version 1 of fruit at http://{server}.\n", pushed.stderr
    again = run("dpal", "push", project.slug, f"mlflow://{server}/fruit")
    assert again.stdout == f"Version 1 of {project.slug} is version 1 of fruit there already.\n", again.stderr
    address = f"{live_server.url}/api/v1/projects/{project.slug}/models/1/predict"
    known = {"Authorization": f"Bearer {secret}"}
    expected = requests.post(address, json={"texts": TEXTS}, headers=known, timeout=30).json()
    assert run("dpal", "download", project.slug, "folder", "--for", "mlflow").returncode == 0
    for where in ("models:/fruit/1", "folder"):
        done = run("python", "-W", "ignore", "-c", LOADED, where, json.dumps(TEXTS))
        assert done.returncode == 0, done.stderr
        labels, shares, facts = json.loads(done.stdout.splitlines()[-1])
        assert labels == expected["labels"]
        assert np.array(shares) == pytest.approx(np.array(expected["probabilities"]), abs=1e-9)
        assert (facts["dpal.project"], facts["dpal.version"]) == (project.slug, "1")
        assert "(20, 0)-differential privacy" in facts["dpal.guarantee.0"]
    # An environment made from the folder alone predicts, too.
    (tmp_path / "asked.json").write_text(json.dumps({"inputs": TEXTS}))
    model = ("--model-uri", "folder", "--env-manager")
    for manager in ("local", "uv"):
        asked = (manager, "--content-type", "json", "--input-path", "asked.json")
        done = run("mlflow", "models", "predict", *model, *asked)
        assert json.loads(done.stdout.splitlines()[-1]) == {"predictions": expected["labels"]}, done.stderr
    command = (programs / "mlflow", "models", "serve", *model, "uv")
    with serving(*command, health="ping", cwd=tmp_path, environment=environment) as served:
        answer = requests.post(f"http://{served}/invocations", json={"inputs": TEXTS}, timeout=60)
        assert answer.json() == {"predictions": expected["labels"]}
    # Somebody who changes a file of the registry is found out where it is loaded.
    (card,) = (tmp_path / "kept").rglob("card.md")
    card.write_text("epsilon 0")
    assert "differs from what was signed" in run("python", "-c", LOADED, "models:/fruit/1", "[]").stderr
    # What is not answered is one sentence.
    refused = run("dpal", "push", project.slug, "mlflow://127.0.0.1:9/fruit")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith("Error: http://127.0.0.1:9 did not take the release")
    assert "Traceback" not in refused.stderr
