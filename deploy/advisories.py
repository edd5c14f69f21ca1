"""Bring deploy/advisories.json up to date from an export of osv.dev: `python deploy/advisories.py all.zip`.

The export is https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip, with one JSON document for each weakness.
What concerns a library of the lock is kept, with the versions it was in; the rest is left out. Needs no network itself.
"""

import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[1]
LOCK, LIST = ROOT / "requirements.lock.txt", ROOT / "deploy" / "advisories.json"
ECOSYSTEM, KIND = "PyPI", "ECOSYSTEM"


def plain(name: str) -> str:
    """Return a library's name as an index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(lock: str) -> set[str]:
    """Return the names of the libraries in a lock file."""
    return {plain(found[1]) for found in re.finditer(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==", lock, re.MULTILINE)}


def documents(path: Path) -> Iterator[dict[str, object]]:
    """Yield the weaknesses of an export: a zip, or a folder of JSON documents."""
    if path.is_dir():
        for file in sorted(path.glob("*.json")):
            yield json.loads(file.read_text(encoding="utf-8"))
        return
    with ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".json"):
                yield json.loads(archive.read(name))


def known_as(document: dict) -> str:
    """Return a weakness's CVE number, or its own where it has none."""
    names = [document["id"], *document.get("aliases", ())]
    return next((name for name in names if name.startswith("CVE-")), document["id"])


def spans(affected: dict) -> Iterator[dict[str, str]]:
    """Yield from which version on a weakness was there, and which one has it mended."""
    for versions in affected.get("ranges", ()):
        if versions["type"] != KIND:
            continue
        since = "0"
        for event in versions["events"]:
            since = event.get("introduced", since)
            if "fixed" in event:
                yield {"introduced": since, "fixed_in": event["fixed"]}
                since = ""
        if since and not any("last_affected" in event for event in versions["events"]):
            # Nothing has it mended: no version of the library will do.
            yield {"introduced": since, "fixed_in": ""}


def advisories(found: Iterator[dict], names: set[str]) -> list[dict[str, str]]:
    """Return what an export says of these libraries, each weakness once."""
    kept = {}
    for document in found:
        if document.get("withdrawn"):
            continue
        for affected in document.get("affected", ()):
            package = affected.get("package", {})
            library = plain(package.get("name", ""))
            if package.get("ecosystem") != ECOSYSTEM or library not in names:
                continue
            for span in spans(affected):
                row = {"library": library, "id": known_as(document), **span}
                kept[tuple(row.values())] = row
    return [kept[key] for key in sorted(kept)]


def main(export: str) -> None:
    """Write the list anew."""
    rows = advisories(documents(Path(export)), locked(LOCK.read_text(encoding="utf-8")))
    if not rows:
        raise SystemExit(f"{export} says nothing of any library here: is it an export of osv.dev for PyPI?")
    listed = json.loads(LIST.read_text(encoding="utf-8"))
    # What is known of images was looked up by hand, and stays.
    head = listed | {"checked": datetime.now(UTC).date().isoformat()}
    LIST.write_text(written(head, rows), encoding="utf-8")
    print(f"{len(rows)} advisories for libraries of the lock")


def written(head: dict, rows: list[dict[str, str]]) -> str:
    """Return the lists as a file, one advisory a line."""
    lists = {"images": head["images"], "advisories": rows}
    opening = json.dumps({name: head[name] for name in head if name not in lists}, indent=2).removesuffix("\n}")
    for name, each in lists.items():
        lines = ",\n".join(f"    {json.dumps(row)}" for row in each)
        opening += f',\n  "{name}": [\n{lines}\n  ]'
    return f"{opening}\n}}\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
