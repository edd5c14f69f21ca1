"""Code and libraries that made a release, by digest and version."""

import hashlib
import platform
import tomllib
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# What a fit, its noise and its files depend on.
PACKAGES = ("learner", "privacy")
LIBRARIES = ("numpy", "onnxruntime", "opendp", "pyarrow", "scikit-learn", "scipy", "skl2onnx", "skops", "tokenizers")


@cache
def code_version() -> str:
    """Return the project's version and the first 16 digits of the SHA-256 of its sources."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    number = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return f"{number}+{digest.hexdigest()[:16]}"


@cache
def environment() -> dict[str, str]:
    libraries = {name: version(name) for name in LIBRARIES}
    return {"dpal": code_version(), "python": platform.python_version(), **libraries}
