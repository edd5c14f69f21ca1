import pytest

from annotation.data.services.registered import checked_address
from annotation.errors import InvalidUpload


@pytest.fixture(autouse=True)
def allowed(settings):
    settings.POOL_SOURCES = ["file:///srv/lake/{project}", "s3://lake/tables", "file:///srv/shared/"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("file:///srv/lake/voices/log", "/srv/lake/voices/log"),
        ("file:///srv/lake/voices", "/srv/lake/voices"),
        ("file:///srv/shared//a/day=2026-11-26/", "/srv/shared/a/day=2026-11-26"),
        ("s3://lake/tables/log", "tables/log"),
        ("s3://lake/tables/log/metadata/v3.metadata.json", "tables/log"),
    ],
)
def test_what_lies_below_an_allowed_place_is_taken(text, path):
    address, root = checked_address(text, slug="voices")
    assert address.path == path
    assert address.is_below(root)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("http://lake/tables/log", "begins with file:// or s3://"),
        ("hdfs://srv/lake/voices", "begins with file:// or s3://"),
        ("/srv/lake/voices/log", "begins with file:// or s3://"),
        ("", "begins with file:// or s3://"),
        ("file://host/srv/lake/voices", "looks like"),
        ("s3:///tables", "looks like"),
        ("file:///srv/lake/voices/\n", "looks like"),
        ("file:///srv/lake/voices/../others", r"without . or .."),
        ("s3://lake/tables/./log", r"without . or .."),
        ("file:///srv/lake/voices/%2e%2e/others", "a key or a port"),
        ("s3://key@lake/tables", "a key or a port"),
        ("s3://lake:9000/tables", "a key or a port"),
        ("file:///srv/lake/voices?x=1", "a key or a port"),
        ("file:///srv/lake/voices#x", "a key or a port"),
        ("file:///srv/lake/voices\\..\\x", "a key or a port"),
        ("file:///srv/lake/voices/v3.metadata.json", "lies in the folder metadata"),
        ("file:///srv/lake/metadata/v3.metadata.json", "lies outside"),
        ("file:///srv/lake/others/log", "lies outside"),
        ("file:///srv/lake/voices-2", "lies outside"),
        ("file:///srv/lake", "lies outside"),
        ("file:///etc/passwd", "lies outside"),
        ("s3://other/tables/log", "lies outside"),
        ("s3://lake/table", "lies outside"),
        ("file:///lake/tables", "lies outside"),
    ],
)
def test_anything_else_is_refused_by_its_rule(text, rule):
    with pytest.raises(InvalidUpload, match=f"^address: .*{rule}"):
        checked_address(text, slug="voices")


def test_without_the_setting_nothing_is_registered(settings):
    settings.POOL_SOURCES = []
    with pytest.raises(InvalidUpload, match="this site registers no tables"):
        checked_address("file:///srv/shared/a", slug="voices")
