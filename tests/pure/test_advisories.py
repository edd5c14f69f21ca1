import json
import zipfile

import pytest

from deploy import advisories

LOCK = """django==5.2.19 \\
    --hash=sha256:00
django-allauth[mfa,socialaccount]==65.21.1 \\
    --hash=sha256:00
"""
IMAGE = {"image": "postgres", "id": "CVE-2025-2", "introduced": "17", "fixed_in": "17.7"}


def weakness(number, name, events, **more):
    affected = {
        "package": {"ecosystem": "PyPI", "name": name},
        "ranges": [{"type": "ECOSYSTEM", "events": events}, {"type": "GIT", "events": [{"introduced": "0"}]}],
    }
    return {"id": number, "affected": [affected], **more}


def span(since, until):
    return [{"introduced": since}, {"fixed": until}]


EXPORT = [
    weakness("PYSEC-1", "Django", span("4.2", "4.2.26") + span("5.2", "5.2.8"), aliases=["GHSA-x", "CVE-2025-1"]),
    weakness("GHSA-x", "django", span("5.2", "5.2.8"), aliases=["CVE-2025-1", "PYSEC-1"]),
    weakness("GHSA-y", "django_allauth", span("0", "65.3")),
    weakness("GHSA-z", "django", [{"introduced": "5.2"}]),
    weakness("GHSA-w", "django", span("0", "9"), withdrawn="2025-01-01T00:00:00Z"),
    weakness("GHSA-v", "django", [{"introduced": "0"}, {"last_affected": "1.0"}]),
    weakness("GHSA-u", "flask", span("0", "9")),
]
ROWS = [
    ("django", "CVE-2025-1", "4.2", "4.2.26"),
    ("django", "CVE-2025-1", "5.2", "5.2.8"),
    ("django", "GHSA-z", "5.2", ""),
    ("django-allauth", "GHSA-y", "0", "65.3"),
]


@pytest.fixture(params=["zip", "folder"])
def export(request, tmp_path):
    folder = tmp_path / "export"
    folder.mkdir()
    for number, document in enumerate(EXPORT):
        (folder / f"{number}.json").write_text(json.dumps(document))
    if request.param == "folder":
        return folder
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    return tmp_path / "all.zip"


def test_an_export_becomes_the_list(export, tmp_path, monkeypatch, capsys):
    listed = tmp_path / "advisories.json"
    listed.write_text(json.dumps({"about": "what it is", "checked": "2020-01-01", "images": [IMAGE], "advisories": []}))
    lock = tmp_path / "lock.txt"
    lock.write_text(LOCK)
    monkeypatch.setattr(advisories, "LIST", listed)
    monkeypatch.setattr(advisories, "LOCK", lock)
    advisories.main(str(export))
    written = json.loads(listed.read_text())
    assert [tuple(row.values()) for row in written["advisories"]] == ROWS
    assert written["about"] == "what it is"
    assert written["images"] == [IMAGE]
    assert written["checked"] > "2026"
    assert capsys.readouterr().out == "4 advisories for libraries of the lock\n"


def test_an_export_of_something_else_changes_nothing(tmp_path, monkeypatch):
    listed = tmp_path / "advisories.json"
    listed.write_text("{}")
    monkeypatch.setattr(advisories, "LIST", listed)
    with pytest.raises(SystemExit, match="says nothing"):
        advisories.main(str(tmp_path))
    assert listed.read_text() == "{}"


def test_the_list_in_the_repository_is_written_as_the_command_writes_it():
    text = advisories.LIST.read_text()
    listed = json.loads(text)
    rows = listed.pop("advisories")
    assert advisories.written(listed, rows) == text
    assert {frozenset(row) for row in rows} == {frozenset({"library", "id", "introduced", "fixed_in"})}
    assert rows == sorted(rows, key=lambda row: tuple(row.values()))
    assert {frozenset(row) for row in listed["images"]} == {frozenset({"image", "id", "introduced", "fixed_in"})}
