import pytest

from dpal_site.embedded.database_address import parse_database_url, through_pooler
from dpal_site.embedded.host import UnsupportedUrl


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_every_part_is_read(scheme):
    found = parse_database_url(f"{scheme}://ann:s3cret@db.example.org:5433/site")
    assert found == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "site",
        "USER": "ann",
        "PASSWORD": "s3cret",
        "HOST": "db.example.org",
        "PORT": "5433",
        "OPTIONS": {},
    }


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mysql://u:hunter2@h/n", "got 'mysql'"),
        ("u:hunter2@h/n", "got no scheme"),
        ("postgresql://u:hunter/2@h/n", "the port"),
        ("postgresql://u:hunter2@h:x/n", "the port"),
        ("postgresql://u:hunter2@h", "names no database"),
    ],
)
def test_an_unusable_url_is_refused_without_repeating_it(url, reason):
    with pytest.raises(UnsupportedUrl, match=reason) as refusal:
        parse_database_url(url)
    assert "hunter" not in str(refusal.value)


def test_behind_a_pooler_no_startup_option_is_sent():
    found = through_pooler(parse_database_url("postgresql://h/n?sslmode=verify-full"))
    assert (found["DISABLE_SERVER_SIDE_CURSORS"], found["OPTIONS"]) == (True, {"sslmode": "verify-full"})
    with pytest.raises(UnsupportedUrl, match="refuses the option"):
        through_pooler(parse_database_url("postgresql://h/n?options=-c%20statement_timeout%3D5s"))
