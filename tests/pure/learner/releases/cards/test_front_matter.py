import copy

import pytest
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import eval_results_to_model_index

from learner.releases.cards.rendering import PIPELINE_TAGS, render_card
from tests.pure.learner.releases.artifacts.test_files import CARD, MODELS, PRIVACY


@pytest.mark.parametrize("kind", PIPELINE_TAGS)
def test_the_library_reads_a_card_as_it_was_meant(kind):
    card = ModelCard(render_card(MODELS[0], reads=kind, card=CARD, privacy=PRIVACY))
    data = card.data
    library = "dpal" if kind == "spans" else "sklearn"
    assert (data.library_name, data.license, data.pipeline_tag) == (library, "unknown", PIPELINE_TAGS[kind])
    assert data.model_name == CARD["name"]
    assert "differential-privacy" in data.tags
    found = {(result.metric_type, result.metric_value) for result in data.eval_results}
    metric = CARD["metrics"][0]
    assert found == {
        ("f1" if kind == "spans" else "accuracy", metric["accuracy"]),
        ("f1", metric["macro_f1"]),
        ("expected_calibration_error", metric["calibration_error"]),
    }
    assert {result.dataset_name for result in data.eval_results} == {"public intents"}
    # And back: nothing that the library does not know stands in the results.
    (again,) = eval_results_to_model_index(data.model_name, data.eval_results)
    assert again["name"] == CARD["name"]
    assert card.text.lstrip().startswith("# Voice intents")


def test_the_guarantee_is_there_for_programs():
    data = ModelCard(render_card(MODELS[0], reads="text", card=CARD, privacy=PRIVACY)).data.to_dict()
    assert data["privacy"] == [{"epsilon": 2.0, "delta": 1e-6, "unit": "contributor", "adjacency": "null"}]


def test_a_version_that_nothing_public_measured_claims_no_results():
    card = copy.deepcopy(CARD) | {"metrics": []}
    data = ModelCard(render_card(MODELS[0], reads="text", card=card, privacy=PRIVACY)).data
    assert data.eval_results is None
    assert "metrics" not in data.to_dict()


NAMES = ("a: b", "- x", "---", 'q"uote', "{}", "\u00c4\n---\nlicense: mit", "null", "1.0")
# A line break to YAML alone, a letter beyond the first plane, and what may not stand in YAML at all.
STRANGE = ("a\x85b", "\U0001f600 \u2028 \x7f")


@pytest.mark.parametrize("name", [*NAMES, *STRANGE])
def test_no_name_acts_as_metadata(name):
    data = ModelCard(render_card(MODELS[0], reads="text", card=CARD | {"name": name}, privacy=PRIVACY)).data
    assert data.license == "unknown"
    assert data.model_name == name
