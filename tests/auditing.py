"""Files for an auditor without an account: a project's statement, a release, what a witness kept, and the keys."""

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from learner.releases.storage import signer
from tests import learning
from tests.factories import add_members, make_user


@dataclass
class Files:
    """What is handed over, and the two public keys."""

    folder: Path
    key: str

    @property
    def statement(self) -> Path:
        return self.folder / "statement.json"

    @property
    def release(self) -> Path:
        return self.folder / "release"

    @property
    def seen(self) -> Path:
        return self.folder / "seen.json"


def handed_over(address: str, tmp_path: Path) -> Files:
    """Export a project's statement and first version while a witness on another host looks on."""
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=1)
    engineer, client = make_user(), Client()
    add_members(project, engineer, role=Role.ENGINEER)
    client.force_login(engineer)
    found = Files(tmp_path / "handed over", signer().public_key)
    found.folder.mkdir()
    lifetime = timedelta(days=1)
    _, secret = tokens.create_token(user=engineer, name="w", scopes=[Scope.LEDGER_READ], lifetime=lifetime)
    command = [sys.executable, "-m", "privacy.audit", "witness", address, project.slug]
    told = {"PATH": os.environ["PATH"], "DPAL_TOKEN": secret}
    keys = ["--public-key", found.key, "--keep", str(found.seen)]
    subprocess.run([*command, *keys], cwd=settings.BASE_DIR, env=told, check=True, capture_output=True)
    statement = client.get(reverse("annotation:statement_json", args=[project.slug]))
    found.statement.write_bytes(b"".join(statement.streaming_content))
    zipped = tmp_path / "release.zip"
    call_command("export_release", project.slug, "1", zipped, stdout=StringIO())
    with zipfile.ZipFile(zipped) as archive:
        archive.extractall(found.release)
    return found
