"""Settings from variables and from files that variables name."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from dpal_site import environment


def test_a_variable_a_file_or_the_default(monkeypatch, tmp_path):
    monkeypatch.delenv("DPAL_THING", raising=False)
    assert environment.read("DPAL_THING", "unset") == "unset"
    (tmp_path / "thing").write_text("from a file\n")
    monkeypatch.setenv("DPAL_THING_FILE", str(tmp_path / "thing"))
    assert environment.read("DPAL_THING") == "from a file"
    monkeypatch.setenv("DPAL_THING", "from a variable")
    with pytest.raises(ImproperlyConfigured, match="not both"):
        environment.read("DPAL_THING")
    monkeypatch.delenv("DPAL_THING_FILE")
    assert environment.read("DPAL_THING") == "from a variable"


def test_a_file_that_is_not_there_is_named_by_its_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("DPAL_THING_FILE", str(tmp_path / "nothing"))
    with pytest.raises(ImproperlyConfigured, match="DPAL_THING_FILE names cannot be read: No such file"):
        environment.read("DPAL_THING")
