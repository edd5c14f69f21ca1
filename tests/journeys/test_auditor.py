import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site_settings

from tests.auditing import Files, handed_over

pytestmark = pytest.mark.django_db(transaction=True)
# All that an auditor has: Python, this code without its site, and these packages.
FOR_STATEMENTS = ("numpy", "scipy", "cryptography", "_cffi_backend")
FOR_RELEASES = ("certifi", "charset_normalizer", "click", "idna", "platformdirs", "requests", "urllib3")


@pytest.fixture
def files(live_server, tmp_path) -> Files:
    return handed_over(live_server.url, tmp_path)


def own_python(folder: Path, *packages: str) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Return what runs Python where this code and these packages can be imported, and nothing else."""
    place = folder / "python"
    place.mkdir(exist_ok=True)
    shutil.copytree(Path(site_settings.BASE_DIR) / "privacy", place / "privacy", dirs_exist_ok=True)
    shutil.copytree(Path(site_settings.BASE_DIR) / "client" / "src" / "dpal", place / "dpal", dirs_exist_ok=True)
    for package in packages:
        found = find_spec(package)
        assert found is not None
        assert found.origin is not None
        origin = Path(found.origin)
        lies = origin.parent if origin.name.startswith("__init__") else origin
        for part in (lies, lies.with_name(f"{package}.libs")):
            if part.exists() and not (place / part.name).exists():
                (place / part.name).symlink_to(part)

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        told = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(place),
            "HOME": str(folder),
            "DPAL_CACHE": str(folder / "c"),
        }
        call = [sys.executable, "-S", *arguments]
        return subprocess.run(call, cwd=folder, env=told, capture_output=True, text=True, check=False)

    return run


def ledger_of(release: Path) -> list[dict[str, Any]]:
    places: list[dict[str, Any]] = json.loads((release / "manifest.json").read_text())["ledger"]
    return places


def test_an_auditor_without_an_account_checks_all_of_it(files, tmp_path):
    python = own_python(tmp_path, *FOR_STATEMENTS)
    for module in ("django", "psycopg", "celery", "learner", "annotation", "requests"):
        assert python("-c", f"import {module}").returncode != 0, module
    paid = [entry["hash"] for place in ledger_of(files.release) for entry in place["entries"]]
    assert paid
    heads = [word for head in paid for word in ("--head", head)]
    audit = ("-m", "privacy.audit", "statement", str(files.statement), "--public-key", files.key)
    sound = python(*audit, "--witnessed", str(files.seen), *heads)
    assert sound.returncode == 0, sound.stdout + sound.stderr
    assert "document: as the site signed it" in sound.stdout
    assert "DIFFERS" not in sound.stdout
    # What the release says was paid is not in another statement.
    strange = python(*audit, "--head", "ab" * 32)
    assert strange.returncode == 1
    assert "chain head noted earlier" in strange.stdout
    content = files.statement.read_bytes()
    files.statement.write_bytes(content.replace(b'"kind": "commit"', b'"kind": "charge"', 1))
    assert python(*audit).returncode == 1
    files.statement.write_bytes(content)

    python = own_python(tmp_path, *FOR_STATEMENTS, *FOR_RELEASES)
    verify = ("-m", "dpal.command_line", "verify", str(files.release), "--public-key", files.key)
    genuine = python(*verify)
    assert genuine.returncode == 0, genuine.stdout + genuine.stderr
    assert "genuine: version 1" in genuine.stdout
    for place in ledger_of(files.release):
        assert f"paid in the ledger {place['checkpoint'].partition(chr(10))[0]}" in genuine.stdout
    weights = files.release / "weights.json"
    weights.write_text(weights.read_text().replace("1", "2", 1))
    assert python(*verify).returncode != 0
