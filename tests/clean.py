"""An environment that holds the client's built wheel, what the wheel says it needs, and nothing else; no network."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from dpal_site.embedded.servers import REPOSITORY

UV = Path(sys.executable).with_name("uv")


def make(folder: Path, *, extra: str = "") -> Path:
    """Build the wheel, install it with what an extra asks for, and return the environment's folder of programs."""
    _uv("build", "--wheel", "--offline", "--out-dir", folder / "wheel", REPOSITORY / "client")
    (wheel,) = (folder / "wheel").glob("dpal_client-*.whl")
    environment = folder / "environment"
    _uv("venv", "--offline", "--quiet", "--python", sys.executable, environment)
    python = environment / "bin" / "python"
    _uv("pip", "install", "--offline", "--no-deps", "--quiet", "--python", python, wheel)
    (packages,) = environment.glob("lib/python*/site-packages")
    (metadata,) = packages.glob("dpal_client-*.dist-info")
    for needed in {one.metadata["Name"]: one for one in _closure(Distribution.at(metadata), extra)}.values():
        _copy(needed, packages)
    # What is declared, in a version that is allowed: uv reads it from the metadata.
    _uv("pip", "check", "--offline", "--python", python)
    return python.parent


def _closure(found: Distribution, extra: str = "") -> Iterator[Distribution]:
    """Yield what a package needs, and what that needs, as installed where the tests run."""
    for line in found.requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            needed = distribution(requirement.name)
            yield needed
            yield from _closure(needed)


def _copy(found: Distribution, packages: Path) -> None:
    for name in found.files or ():
        if ".." not in name.parts and "__pycache__" not in name.parts:
            target = packages / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(found.locate_file(name)), target)


def _uv(*arguments: str | Path) -> None:
    done = subprocess.run([UV, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
