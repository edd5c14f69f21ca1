"""What `make setup` makes of a lock file: by uv, by pip where uv does not run, and nothing where a hash is another."""

import base64
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from dpal_site.embedded.servers import REPOSITORY

STANDS_STILL = b"#!/bin/sh\nexit 1\n"
PLAIN = {"plain.py": b"SAID = 'installed'\n"}


def wheel(folder, name, version, files, *, runs=()):
    info = f"{name}-{version}.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
    }
    record = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()},{len(content)}"
        for path, content in files.items()
    ]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    made = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (stat.S_IFREG | (0o755 if path in runs else 0o644)) << 16
            archive.writestr(entry, content)
    return f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(made.read_bytes()).hexdigest()}\n"


class Checkout:
    def __init__(self, folder):
        self.folder, self.wheels, self.lines = folder / "checkout", folder / "wheels", {}
        self.python = self.folder / ".venv" / "bin" / "python"
        (self.folder / ".ci").mkdir(parents=True)
        self.wheels.mkdir()
        shutil.copy(REPOSITORY / ".ci" / "setup", self.folder / ".ci" / "setup")
        self.environment = {
            "PATH": os.pathsep.join([str(folder / "programs"), os.environ["PATH"]]),
            "HOME": str(folder),
            "PIP_NO_INDEX": "1",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_FIND_LINKS": str(self.wheels),
            "UV_NO_CONFIG": "1",
            "UV_OFFLINE": "1",
            "UV_FIND_LINKS": str(self.wheels),
            "UV_CACHE_DIR": str(folder / "uv-cache"),
        }
        (folder / "programs").mkdir()
        # The first that the script asks for, so that every machine makes the same environment.
        (folder / "programs" / "python3.13").symlink_to(Path(sys._base_executable))
        self.programs = folder / "programs"

    def has(self, name, version, files, **options):
        self.lines[name] = wheel(self.wheels, name, version, files, **options)
        self.write("".join(self.lines[known] for known in sorted(self.lines)))

    def has_uv(self, *, program=None):
        version = distribution("uv").version
        content = Path(sys.executable).with_name("uv").read_bytes() if program is None else program
        script = f"uv-{version}.data/scripts/uv"
        self.has("uv", version, {script: content}, runs={script})

    def write(self, lock):
        (self.folder / "requirements.lock.txt").write_text(lock)

    def set_up(self):
        return subprocess.run(
            ["sh", ".ci/setup"], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300
        )

    def says(self, code):
        return subprocess.run([self.python, "-c", code], capture_output=True, text=True, timeout=120).stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    made = Checkout(tmp_path)
    made.has("plain", "1.0", PLAIN)
    return made


@pytest.mark.slow
def test_uv_installs_what_the_lock_names_once(checkout):
    checkout.has_uv()
    done = checkout.set_up()
    assert (done.returncode, done.stderr) == (0, "")
    assert "Installing 2 packages" in done.stdout
    assert "pip takes" not in done.stdout
    assert checkout.says("import plain; print(plain.SAID)") == "installed"
    assert checkout.says(
        "from importlib.metadata import distribution as d; print(d('plain').read_text('INSTALLER'))"
    ) == ("uv")
    assert checkout.says("import importlib.util as u; print(u.find_spec('pip'))") == "None"
    again = checkout.set_up()
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("program", [STANDS_STILL, b"not a program of this machine"])
def test_pip_installs_the_same_where_uv_does_not_run(checkout, program):
    checkout.has_uv(program=program)
    done = checkout.set_up()
    assert (done.returncode, "pip takes a minute or two" in done.stdout) == (0, True)
    assert checkout.says("import plain; print(plain.SAID)") == "installed"
    assert checkout.says(
        "from importlib.metadata import distribution as d; print(d('plain').read_text('INSTALLER'))"
    ) == ("pip")


@pytest.mark.slow
@pytest.mark.parametrize(("other", "program"), [("uv", None), ("plain", None), ("plain", STANDS_STILL)])
def test_what_has_another_hash_is_installed_by_neither(checkout, program, other):
    checkout.has_uv(program=program)
    lock = (checkout.folder / "requirements.lock.txt").read_text()
    line = checkout.lines[other]
    checkout.write(lock.replace(line, line[:-65] + "0" * 64 + "\n"))
    done = checkout.set_up()
    assert done.returncode != 0
    assert "hash" in done.stderr.lower()
    assert checkout.says("import plain; print(plain.SAID)") == ""
    assert not (checkout.folder / ".venv" / "installed.lock.txt").exists()


def test_an_old_python_alone_is_named(checkout):
    for name in ("python3.13", "python3.12", "python3.11", "python3"):
        (checkout.programs / name).unlink(missing_ok=True)
        (checkout.programs / name).write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2"\nexit 1\n')
        (checkout.programs / name).chmod(0o755)
    done = checkout.set_up()
    assert (done.returncode, checkout.python.exists()) == (1, False)
    assert "Python 3.11 or newer is needed; found: Python 3.9.2" in done.stderr
