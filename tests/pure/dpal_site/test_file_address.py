import pytest
from django.core.exceptions import ImproperlyConfigured

from dpal_site.environment import storage_settings, table_places


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_FILE", raising=False)


def test_a_folder_keeps_its_files_to_its_owner():
    found = storage_settings("file:///srv/dpal%20files")
    assert found["OPTIONS"] == {
        "location": "/srv/dpal files",
        "file_permissions_mode": 0o600,
        "directory_permissions_mode": 0o700,
    }


def test_a_bucket_with_a_key_from_a_file(monkeypatch, tmp_path):
    (tmp_path / "key").write_text("very secret\n")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "dpal")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY_FILE", str(tmp_path / "key"))
    url = "s3://labels/site/one?endpoint_url=https%3A%2F%2Fs3.example.org&region=eu-central-1"
    found = storage_settings(url)
    options = found["OPTIONS"]
    assert found["BACKEND"] == "annotation.work.object_storage.ObjectStorage"
    assert (options["bucket_name"], options["location"], options["region_name"]) == (
        "labels",
        "site/one",
        "eu-central-1",
    )
    assert (options["endpoint_url"], options["access_key"]) == ("https://s3.example.org", "dpal")
    assert options["secret_key"] == "very secret"
    assert options["default_acl"] is None
    assert options["client_config"].signature_version == "s3v4"
    assert options["client_config"].s3 == {"addressing_style": "path"}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://host/folder", "got scheme 'ftp'"),
        ("s3:///prefix", "got scheme 's3'"),
        ("s3://key:hunter2@bucket/prefix", "names a bucket alone"),
        ("s3://bucket/prefix?public=1", "got public"),
        ("s3://bucket/prefix?endpoint_url=s3.example.org", "must start with https"),
    ],
)
def test_another_address_is_refused_without_repeating_it(url, reason):
    with pytest.raises(ImproperlyConfigured, match=reason) as refusal:
        storage_settings(url)
    assert "hunter" not in str(refusal.value)


@pytest.mark.parametrize(
    "place", ["/srv/lake", "http://lake", "s3://", "s3://key@lake", "s3://lake:9000/a", "file:///a/../b", "file:///a?b"]
)
def test_anything_else_is_no_place_of_tables(monkeypatch, place):
    monkeypatch.setenv("POOL_SOURCES", f"file:///srv/lake,{place}")
    with pytest.raises(ImproperlyConfigured, match="POOL_SOURCES must list"):
        table_places()
