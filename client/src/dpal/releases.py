"""Fetching a release: only what is missing, verified before it counts, kept by digest."""

import hashlib
import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpal import settings
from dpal.errors import Broken, DpalError, NotCached, NotGenuine, NotReached, OfflineWarning, Retired
from dpal.files import sha256_of, write_whole
from dpal.manifest import MANIFEST, SIGNATURE, Listed, Manifest, read_manifest, verify_folder
from dpal.model import Model
from dpal.site import Site, broken, quoted

LATEST = "latest"
# What the manifest does not list; the last one is for other programs, which check it by another key.
SIGNATURES = (MANIFEST, SIGNATURE)
# A file of the cache that nobody has written to for so long belongs to a process that is gone.
LEFT_SECONDS = 60
# How often a connection may break before somebody is told.
TRIES = 3
LARGEST_SIGNED = 2**20
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Fetched:
    """A release whose files are all in the cache, verified: those that the manifest lists, and the `signed` ones."""

    manifest: Manifest
    files: Mapping[str, Path]
    signed: Mapping[str, Path]


@dataclass(frozen=True)
class Wheel:
    """This package as its site serves it, for programs that install it where they run a model."""

    name: str
    content: bytes


def fetch_wheel(site: str, token: str | None = None) -> Wheel:
    """Fetch this package from the site, whose releases it reads; the digest is that of the site's index."""
    with Site(site, token) as asked:
        index = asked.get("/simple/dpal-client/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
        (listed,) = index["files"]
        content = b"".join(asked.file(str(listed["url"])))
    if hashlib.sha256(content).hexdigest() != listed["hashes"]["sha256"]:
        raise NotGenuine(f"{listed['filename']} from {asked.address} is not the file that its index names.")
    return Wheel(str(listed["filename"]), content)


def load(
    site: str,
    project: str,
    version: int | str = LATEST,
    *,
    token: str | None = None,
    public_key: str | None = None,
    retired: bool = False,
    offline: bool = False,
) -> Model:
    """Return a released model, downloaded where it is not in the cache, and verified in any case.

    Parameters
    ----------
    site : str
        Like ``https://dpal.example.org``.
    project : str
        The project's name in addresses.
    version : int or "latest"
    token : str, optional
        An API token with the scope ``models:read``; by default that of the environment variable DPAL_TOKEN, then that
        of the last `dpal login`.
    public_key : str, optional
        The site's signing key, from its release page. By default the one met with the first release from there; a site
        that comes with another one later is refused.
    retired : bool
        Whether a version that was taken back may be used.
    offline : bool
        Use what was downloaded before, and no network. A site that does not answer has the same effect, with an
        `OfflineWarning`.

    Raises
    ------
    DpalError
        With one sentence that says what is wrong and what to do.
    """
    fetched = fetch(site, project, version, token=token, public_key=public_key, retired=retired, offline=offline)
    return _model(fetched.manifest, fetched.files)


def open_folder(folder: str | Path, *, public_key: str) -> Model:
    """Return the model of a folder that `dpal download` or an exported zip made, once it is verified."""
    manifest, files = verify_folder(Path(folder), public_key=public_key)
    return _model(manifest, files)


def _model(manifest: Manifest, files: Mapping[str, Path]) -> Model:
    model = Model(manifest.project, manifest.version, files)
    model.check()
    return model


def fetch(
    site: str,
    project: str,
    version: int | str = LATEST,
    *,
    token: str | None = None,
    public_key: str | None = None,
    retired: bool = False,
    offline: bool = False,
    progress: Progress | None = None,
) -> Fetched:
    """Bring all files of a release into the cache, as `load` does, and return where they are."""
    address = settings.site_address(site)
    if offline:
        return _cached(address, project, str(version), public_key=public_key, retired=retired)
    with Site(address, token) as asked:
        try:
            described = asked.request("GET", f"projects/{quoted(project)}/models/{quoted(str(version))}")
        except NotReached:
            cached = _cached(address, project, str(version), public_key=public_key, retired=retired)
            warnings.warn(
                f"{address} does not answer: version {cached.manifest.version} of {project} comes from the cache. "
                "Whether it was retired since, or followed by a newer one, cannot be known.",
                OfflineWarning,
                stacklevel=3,
            )
            return cached
        if described["state"] == "retired" and not retired:
            raise Retired(_retired(project, described))
        key = _trusted_key(address, given=public_key, published=str(described["public_key"]))
        fetched = _download(asked, project, described, key=key, progress=progress)
    if public_key is None and not settings.known_of(address).public_key:
        settings.remember(address, public_key=key)
    _note(address, project, str(version), described, fetched)
    return fetched


def _trusted_key(address: str, *, given: str | None, published: str) -> str:
    known = given or settings.known_of(address).public_key or published
    if known != published:
        raise NotGenuine(
            f"{address} signs with another key than the one you trust. If whoever runs it confirms the new key, run "
            f"`dpal trust {address} KEY`."
        )
    return known


def _retired(project: str, described: Mapping[str, Any]) -> str:
    reason = str(described["retired_reason"]).rstrip(".") or "no reason given"
    return (
        f"Version {described['version']} of {project} was retired ({reason}): take another one, or allow retired ones "
        "if you must."
    )


def _download(
    site: Site, project: str, described: Mapping[str, Any], *, key: str, progress: Progress | None
) -> Fetched:
    base = f"/api/v1/projects/{quoted(project)}/models/{described['version']}/files/"
    digests = {str(one["name"]): str(one["sha256"]) for one in described["files"]}
    if not {MANIFEST, SIGNATURE} <= digests.keys():
        raise NotGenuine(f"Version {described['version']} of {project} is not signed.")
    signed = {
        name: _file(site, base + name, Listed(digests[name], LARGEST_SIGNED), exact=False)
        for name in SIGNATURES
        if name in digests
    }
    manifest = read_manifest(signed[MANIFEST].read_bytes(), signed[SIGNATURE].read_bytes(), public_key=key)
    if (manifest.project, manifest.version) != (project, int(described["version"])):
        raise NotGenuine(
            f"{site.address} sent version {manifest.version} of {manifest.project} where version "
            f"{described['version']} of {project} was asked for: nothing of it is used."
        )
    files = {
        name: _file(site, base + name, listed, progress=progress) for name, listed in sorted(manifest.files.items())
    }
    return Fetched(manifest, files, signed)


def _file(site: Site, path: str, listed: Listed, *, exact: bool = True, progress: Progress | None = None) -> Path:
    target = _stored(listed.sha256)
    if target.exists() and sha256_of(target) == listed.sha256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _partial(target.parent, listed.sha256) as partial:
        for turn in range(TRIES):
            try:
                _go_on(site, path, listed, partial, progress)
                break
            except (Broken, NotReached) as error:
                if turn == TRIES - 1:
                    # Whoever answered once and does not any more broke off.
                    raise error if not partial.exists() else Broken(broken(site.address, path)) from error
                time.sleep(0.5 * 2**turn)
        fits = partial.stat().st_size == listed.size or not exact
        if not fits or sha256_of(partial) != listed.sha256:
            partial.unlink()
            raise NotGenuine(
                f"{path.rpartition('/')[2]} from {site.address} is not what was signed: it was thrown away."
            )
        partial.replace(target)
    return target


def _go_on(site: Site, path: str, listed: Listed, partial: Path, progress: Progress | None) -> None:
    """Add to a file what is still missing of it; a site that sends more than it signed is not listened to."""
    have = partial.stat().st_size if partial.exists() else 0
    if have >= listed.size:
        return
    with partial.open("ab") as file:
        for block in site.file(path, start=have, tag=f'"{listed.sha256}"'):
            have += len(block)
            if have > listed.size:
                break
            file.write(block)
            if progress:
                progress(path.rpartition("/")[2], have, listed.size)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _partial(folder: Path, digest: str) -> Iterator[Path]:
    """Give this process a place for the file with a digest, with what somebody left of it there."""
    mine = folder / f".{digest}.{os.getpid()}-{time.monotonic_ns()}.part"
    left = folder / f".{digest}.part"
    for other in (left, *folder.glob(f".{digest}.*.part")):
        try:
            if other == left or other.stat().st_mtime < time.time() - LEFT_SECONDS:
                # Only one process can rename it.
                other.rename(mine)
                break
        except OSError:
            continue
    try:
        yield mine
    except BaseException:
        if mine.exists():
            mine.replace(left)
        raise


def _stored(digest: str) -> Path:
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise NotGenuine("The site names something as a digest that is none.")
    return settings.stored_file(digest)


def _notes(address: str, project: str) -> Path:
    host = address.partition("://")[2].replace(":", "_")
    return settings.cache_folder() / "releases" / host / quoted(project)


def _note(address: str, project: str, asked: str, described: Mapping[str, Any], fetched: Fetched) -> None:
    """Write down, once everything is there, which files a version consists of."""
    number = str(fetched.manifest.version)
    digests = {name: path.name for name, path in {**fetched.files, **fetched.signed}.items()}
    body = {"version": fetched.manifest.version, "files": digests}
    body |= {name: described[name] for name in ("state", "retired_reason")}
    for name in {number, asked}:
        write_whole(_notes(address, project) / f"{quoted(name)}.json", (json.dumps(body, indent=1) + "\n").encode())


def _cached(address: str, project: str, asked: str, *, public_key: str | None, retired: bool) -> Fetched:
    key = public_key or settings.known_of(address).public_key
    try:
        noted = json.loads((_notes(address, project) / f"{quoted(asked)}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        named = "the latest version" if asked == LATEST else f"version {asked}"
        raise NotCached(
            f"{named.capitalize()} of {project} was never downloaded here: load it once with a network."
        ) from error
    if noted["state"] == "retired" and not retired:
        raise Retired(_retired(project, noted))
    if not key:
        raise NotGenuine(f"No key of {address} is known here: pass public_key from its release page.")
    paths = {name: _stored(digest) for name, digest in noted["files"].items()}
    missing = [name for name, path in paths.items() if not path.exists()]
    if missing:
        raise NotCached(f"The cache lacks {', '.join(sorted(missing))} of {project}: load it once with a network.")
    signed = {name: paths[name] for name in SIGNATURES if name in paths}
    manifest = read_manifest(signed[MANIFEST].read_bytes(), signed[SIGNATURE].read_bytes(), public_key=key)
    if (manifest.project, manifest.version) != (project, int(noted["version"])):
        raise NotGenuine(f"The cache holds another release than {project} version {noted['version']}: empty it.")
    for name, listed in manifest.files.items():
        if paths.get(name) != _stored(listed.sha256) or sha256_of(paths[name]) != listed.sha256:
            raise NotGenuine(f"{name} in the cache differs from what was signed: load it again with a network.")
    return Fetched(manifest, {name: paths[name] for name in manifest.files}, signed)


def copy_to(fetched: Fetched, folder: Path) -> None:
    with folder_in_the_making(folder) as partial:
        for name, path in {**fetched.files, **fetched.signed}.items():
            write_whole(partial / name, path.read_bytes())


@contextmanager
def folder_in_the_making(folder: Path) -> Iterator[Path]:
    """Give a folder to fill that takes its name once it is complete."""
    if folder.exists():
        raise DpalError(f"{folder} is there already: name a new folder.")
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    partial.mkdir(parents=True)
    try:
        yield partial
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial)
        raise
