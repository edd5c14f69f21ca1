import pytest
from django.core.exceptions import ImproperlyConfigured
from environs import EnvValidationError

from dpal_site.environment import AT_LEAST_ONE, env, one_of_words


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.delenv("DPAL_THING", raising=False)
    monkeypatch.delenv("DPAL_THING_FILE", raising=False)


def test_a_variable_a_file_or_the_default(monkeypatch, tmp_path):
    assert env.str("DPAL_THING", "unset") == "unset"
    (tmp_path / "thing").write_text("from a file\n")
    monkeypatch.setenv("DPAL_THING_FILE", str(tmp_path / "thing"))
    assert env.str("DPAL_THING", "") == "from a file"
    monkeypatch.setenv("DPAL_THING", "from a variable")
    with pytest.raises(ImproperlyConfigured, match="set DPAL_THING or DPAL_THING_FILE, not both"):
        env.str("DPAL_THING", "")
    monkeypatch.delenv("DPAL_THING_FILE")
    assert env.str("DPAL_THING", "") == "from a variable"


def test_a_file_that_is_not_there_is_named_by_its_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("DPAL_THING_FILE", str(tmp_path / "nothing"))
    with pytest.raises(ValueError, match="DPAL_THING_FILE must be a readable file"):
        env.str("DPAL_THING", "")


def test_what_breaks_its_rule_is_named_and_not_shown(monkeypatch):
    monkeypatch.setenv("DPAL_THING", "much")
    for read in (
        lambda: env.int("DPAL_THING", 1),
        lambda: env.bool("DPAL_THING", False),
        lambda: env.str("DPAL_THING", "", validate=one_of_words("few", "all")),
    ):
        with pytest.raises(EnvValidationError, match="DPAL_THING") as refused:
            read()
        assert "much" not in str(refused.value)
    monkeypatch.setenv("DPAL_THING", "0")
    with pytest.raises(EnvValidationError, match=r"DPAL_THING.*greater than or equal to 1"):
        env.int("DPAL_THING", 1, validate=AT_LEAST_ONE)
