import pytest

from learner.features.choice import RecordShape
from learner.features.declared_rules import DeclaredRules
from learner.features.encoder import SentenceEncoder
from learner.features.image import ImageFeaturizer
from learner.features.planned import PlannedFeatures, planned_columns
from learner.features.static_encoder import StaticEncoder
from learner.features.tabular import TabularFeaturizer
from learner.features.text import HashingTextFeaturizer

SHAPES = {
    "text": RecordShape("text", 64, "L2"),
    "table": RecordShape("table", 64, columns=({"name": "age", "low": 0, "high": 99},)),
    "image": RecordShape("image", 64, image_height=28, image_width=20),
}
KINDS = {"text": HashingTextFeaturizer, "table": TabularFeaturizer, "image": ImageFeaturizer}


@pytest.mark.parametrize("kind", SHAPES)
def test_each_kind_of_records_has_a_featuriser(kind):
    found = DeclaredRules().featurizer(SHAPES[kind])
    assert type(found) is KINDS[kind]
    assert found.dimension == {"text": 64, "table": 1, "image": 64 + 16}[kind]


def test_what_is_planned_reads_texts_by_the_encoder_and_the_rest_by_declared_rules():
    found = PlannedFeatures(text_columns=32).featurizer(SHAPES["text"])
    assert (type(found), found.dimension) == (StaticEncoder, 32)
    network = PlannedFeatures(text_columns=32, sentence_network=True).featurizer(SHAPES["text"])
    assert (type(network), network.dimension) == (SentenceEncoder, 32)
    for kind in ("table", "image"):
        planned = PlannedFeatures().featurizer(SHAPES[kind])
        assert planned.parameters() == DeclaredRules().featurizer(SHAPES[kind]).parameters()


@pytest.mark.parametrize(("number", "columns"), [(2, 256), (3, 128), (30, 128), (31, 192)])
def test_many_classes_have_more_columns_and_two_of_a_pool_have_all(number, columns):
    assert planned_columns(number) == columns
    classes = [str(one) for one in range(number)]
    of_pool = PlannedFeatures().planned({"data_kind": "text", "classes": classes})
    assert of_pool == {"text_columns": 256 if number == 2 else 192, "sentence_network": number > 2}
    of_stream = PlannedFeatures().planned({"data_kind": "text", "classes": classes, "arrival": "stream"})
    assert of_stream == {"text_columns": 128 if number == 2 else columns, "sentence_network": False}
    assert PlannedFeatures().planned({"data_kind": "table", "classes": classes}) == {}
