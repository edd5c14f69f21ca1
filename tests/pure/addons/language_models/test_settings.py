import pytest
from django.core.exceptions import ImproperlyConfigured

from addons.language_models import settings as language_models
from dpal_site.environment import env


def test_names_addresses_models_and_keys(monkeypatch, tmp_path):
    monkeypatch.setenv("LANGUAGE_MODELS", "ours=http://127.0.0.1:8080/v1 small, big-one=https://models.example/v large")
    monkeypatch.setenv("LANGUAGE_MODEL_KEY_OURS", "sesame")
    key = tmp_path / "key"
    key.write_text("from a file\n")
    monkeypatch.setenv("LANGUAGE_MODEL_KEY_BIG_ONE_FILE", str(key))
    assert language_models.named(env) == {
        "ours": ("http://127.0.0.1:8080/v1", "small", "sesame"),
        "big-one": ("https://models.example/v", "large", "from a file"),
    }


def test_none_are_named_by_default_and_no_host_is_allowed(monkeypatch):
    monkeypatch.delenv("LANGUAGE_MODELS", raising=False)
    assert language_models.named(env) == {}
    assert language_models.hosts(env, "LANGUAGE_MODEL_HOSTS") == []
    monkeypatch.setenv("LANGUAGE_MODEL_HOSTS", " Models.example , other.example:8443 ")
    assert language_models.hosts(env, "LANGUAGE_MODEL_HOSTS") == ["models.example", "other.example:8443"]


@pytest.mark.parametrize("wrong", ["ours", "ours=http://a", "Ours=http://a m", "=http://a m", "ours=http://a m n"])
def test_half_an_entry_is_refused_without_what_it_holds(monkeypatch, wrong):
    monkeypatch.setenv("LANGUAGE_MODELS", wrong)
    with pytest.raises(ImproperlyConfigured, match="write name=address model") as refused:
        language_models.named(env)
    assert "http" not in str(refused.value)
