import pytest

from annotation.choices.presets import PRESETS, broken_rules
from learner.features.encoder import PublicEncoder

TEXTS = {**PRESETS["voice-crowd"].defaults, "oracle": "crowd", "data_kind": "text", "classes": ["a", "b"]}
IMAGES = {**PRESETS["pool-experts"].defaults, "oracle": "trusted", "data_kind": "image", "classes": ["a", "b"]}


@pytest.mark.parametrize("installed", [False, True])
def test_what_a_choice_needs_must_be_there_and_an_encoder_reads_texts(monkeypatch, installed):
    """A choice says by `missing` what the site lacks for it."""
    monkeypatch.setattr(PublicEncoder, "missing", lambda: "" if installed else "is not installed", raising=False)
    assert ("features" in broken_rules(TEXTS | {"features": "encoder"})) == (not installed)
    assert "features" in broken_rules(IMAGES | {"features": "encoder"})


def test_what_has_a_proof_is_accepted():
    assert broken_rules(IMAGES) == {}
