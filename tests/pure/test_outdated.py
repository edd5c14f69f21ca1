import json
import os
from datetime import date, timedelta

import pytest

from deploy import outdated

LISTED = json.loads(outdated.LIST.read_text())
DIGESTS = {each.tag: each.digest for each in outdated.used()}
# Docker's own part: a program of that name that answers from a file, as no registry is reached from a test.
DOCKER = """#!/bin/sh
for tag; do :; done
grep -q . {folder}/away 2>{folder}/said && {{ echo "connection refused" >&2; exit 1; }}
found=$(grep -F "$tag " {folder}/tags | cut -d ' ' -f 2)
[ -n "$found" ] && echo "$found" || {{ echo "ERROR: $tag: not found" >&2; exit 1; }}
"""


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """Give the folder that says what the registry has; at first what is written here."""
    program = tmp_path / "docker"
    program.write_text(DOCKER.format(folder=tmp_path))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(outdated, "later_libraries", list)
    (tmp_path / "tags").write_text("".join(f"{tag} {digest}\n" for tag, digest in DIGESTS.items()))
    return tmp_path


def said(capsys, **more):
    checked = date.fromisoformat(LISTED["checked"])
    code = outdated.main(**({"today": checked} | more))
    return code, [line for line in capsys.readouterr().out.splitlines() if line]


def test_every_image_is_named_by_version_and_bytes():
    assert {each.name for each in outdated.used()} == {"postgres", "valkey/valkey", "clamav/clamav", "python"}
    assert all(each.digest for each in outdated.used())


def test_no_image_has_a_listed_weakness():
    assert [line for each in outdated.used() for line in outdated.weaknesses(each, LISTED["images"])] == []
    assert {row["image"] for row in LISTED["images"]} == {each.name for each in outdated.used()}


def test_the_images_of_before_are_found():
    old = outdated.images(
        "    image: postgres:17.6-bookworm\n    image: valkey/valkey:8.1.3-bookworm\n    image: dpal:0.1.0\n",
        "FROM python:3.11.12-slim-bookworm AS site\n",
    )
    assert [(each.name, each.suffix) for each in old] == [
        ("postgres", "-bookworm"),
        ("valkey/valkey", "-bookworm"),
        ("python", "-slim-bookworm"),
    ]
    found = [line for each in old for line in outdated.weaknesses(each, LISTED["images"])]
    assert "valkey/valkey:8.1.3-bookworm: CVE-2025-49844, mended in 8.1.4" in found
    assert "postgres:17.6-bookworm: CVE-2026-6473, mended in 17.10" in found
    assert len([line for line in found if line.startswith("python")]) == 1


def test_nothing_is_said_where_all_is_as_written(registry, capsys):
    assert said(capsys) == (0, [])


def test_other_bytes_and_later_patches_are_told(registry, capsys):
    tags = (registry / "tags").read_text().replace(DIGESTS["clamav/clamav:1.4.6"], "sha256:ff")
    (registry / "tags").write_text(tags + "postgres:17.12-bookworm sha256:aa\npostgres:17.13-bookworm sha256:bb\n")
    code, lines = said(capsys)
    assert code == 1
    assert lines == [
        "postgres:17.11-bookworm: postgres:17.13-bookworm@sha256:bb is out",
        f"clamav/clamav:1.4.6: written here as {DIGESTS['clamav/clamav:1.4.6']}, the registry has sha256:ff",
    ]


def test_what_could_not_be_asked_is_said(registry, capsys, monkeypatch):
    (registry / "away").write_text("away\n")
    code, lines = said(capsys)
    assert code == 2
    assert lines == ["images: the registry was not asked: connection refused"]
    monkeypatch.setenv("PATH", str(registry / "none"))
    assert said(capsys) == (2, ["images: docker is not here, so the registry was not asked"])


def test_a_list_that_nobody_looked_over_is_told(registry, capsys):
    late = date.fromisoformat(LISTED["checked"]) + timedelta(days=31)
    assert said(capsys, today=late) == (1, ["deploy/advisories.json: last looked over 31 days ago"])
