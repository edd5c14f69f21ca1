import json

from deploy import outdated

LISTED = json.loads(outdated.LIST.read_text())


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
