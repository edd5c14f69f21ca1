"""Say what is out of date: `python deploy/outdated.py` exits with 1 if anything is, and 2 where it could not ask.

Images of docker-compose.yml and the Dockerfile, libraries of the lock. Known weaknesses come from the list of
advisories and need no network. Whether a tag still has the digest written here, and whether a later patch is out,
`docker` asks the registry; `uv` asks the index for later libraries, which are told and fail nothing.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "deploy" / "advisories.json"
NAMED = re.compile(r"^(?:\s*image:|FROM) (\S+:\d\S*)", re.MULTILINE)
PARTS = re.compile(r"(?P<name>[^:@]+):(?P<version>\d+(?:\.\d+)+)(?P<suffix>[^@]*)(?:@(?P<digest>sha256:[0-9a-f]{64}))?")
OLDEST_LIST_DAYS = 30
# Later patches are looked for one by one, as far as this.
FARTHEST = 20


@dataclass(frozen=True, slots=True)
class Image:
    """An image as it is written down: where it comes from, its version, what follows that, and its bytes."""

    name: str
    version: str
    suffix: str
    digest: str

    @property
    def tag(self) -> str:
        """What the registry knows it as."""
        return f"{self.name}:{self.version}{self.suffix}"


def images(*texts: str) -> list[Image]:
    """Return the images that compose files and recipes name, each once; our own has no registry."""
    found = {each: None for text in texts for each in NAMED.findall(text) if not each.startswith("dpal:")}
    return [Image(**(read.groupdict() | {"digest": read["digest"] or ""})) for read in map(PARTS.match, found) if read]


def used() -> list[Image]:
    """Return the images of this version."""
    return images(*((ROOT / name).read_text(encoding="utf-8") for name in ("docker-compose.yml", "Dockerfile")))


def weaknesses(image: Image, listed: list[dict[str, str]]) -> Iterator[str]:
    """Yield the listed weaknesses that an image's version has."""
    for row in listed:
        mended = row["fixed_in"]
        since, here = Version(row["introduced"]), Version(image.version)
        if row["image"] == image.name and since <= here and (not mended or here < Version(mended)):
            yield f"{image.tag}: {row['id']}, mended in {mended or 'nothing yet'}"


def changed(image: Image, ask: Callable[[str], str]) -> Iterator[str]:
    """Yield what the registry says otherwise; `ask` returns a tag's digest, empty where there is no such tag."""
    there = ask(image.tag)
    if there != image.digest:
        yield f"{image.tag}: written here as {image.digest or 'no digest'}, the registry has {there or 'no such tag'}"
    *line, patch = image.version.split(".")
    latest = ""
    for number in range(int(patch) + 1, int(patch) + FARTHEST):
        later = f"{image.name}:{'.'.join([*line, str(number)])}{image.suffix}"
        digest = ask(later)
        if not digest:
            break
        latest = f"{later}@{digest}"
    if latest:
        yield f"{image.tag}: {latest} is out"


def of_the_registry(tag: str) -> str:
    """Ask the registry by docker for the digest of a tag."""
    command = ["docker", "buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}", tag]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode and not re.search(r"not found|manifest unknown", done.stderr):
        raise OSError(done.stderr.strip() or "docker says nothing")
    return done.stdout.strip() if done.returncode == 0 else ""


def later_libraries() -> list[str]:
    """Ask the index by uv for libraries that have a later version."""
    command = [Path(sys.executable).with_name("uv"), "pip", "list", "--outdated", "--format", "json"]
    done = subprocess.run([*command, "--python", sys.executable], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise OSError(done.stderr.strip())
    return [f"{each['name']}=={each['version']}: {each['latest_version']} is out" for each in json.loads(done.stdout)]


def main(*, today: date | None = None) -> int:
    """Say it all."""
    listed = json.loads(LIST.read_text(encoding="utf-8"))
    found = [line for image in used() for line in weaknesses(image, listed["images"])]
    age = (today or datetime.now(UTC).date()) - date.fromisoformat(listed["checked"])
    if age.days > OLDEST_LIST_DAYS:
        found.append(f"deploy/advisories.json: last looked over {age.days} days ago")
    silent: list[str] = []
    if shutil.which("docker") is None:
        silent.append("images: docker is not here, so the registry was not asked")
    else:
        try:
            found += [line for image in used() for line in changed(image, of_the_registry)]
        except (OSError, subprocess.TimeoutExpired) as error:
            silent.append(f"images: the registry was not asked: {error}")
    try:
        later = later_libraries()
    except (OSError, subprocess.TimeoutExpired) as error:
        later = []
        silent.append(f"libraries: the index was not asked: {error}")
    print(*found, *silent, *later, sep="\n")
    return 1 if found else 2 if silent else 0


if __name__ == "__main__":
    raise SystemExit(main())
