import psycopg
import pytest

from dpal_site.embedded import servers


@pytest.fixture(autouse=True)
def empty_site(monkeypatch, tmp_path):
    monkeypatch.setenv("DPAL_VAR", str(tmp_path / "var"))
    monkeypatch.setenv("DPAL_NO_SERVERS", "1")
    return tmp_path / "var"


def test_a_configured_url_wins(empty_site):
    found = servers.database_settings("postgresql://u@db.example.org/n")
    assert (found["HOST"], found["NAME"]) == ("db.example.org", "n")
    assert not empty_site.exists()


def test_without_servers_settings_load_and_the_connection_says_why(empty_site):
    found = servers.database_settings(None)
    assert servers.broker_url().startswith("redis+socket://")
    with pytest.raises(psycopg.OperationalError, match="DPAL_NO_SERVERS is set"):
        psycopg.connect(host=found["HOST"], dbname=found["NAME"])
    assert not empty_site.exists()
