from annotation.choices.catalogue import CATALOGUE, KEYS
from annotation.choices.services import COLUMNS
from annotation.models import Project

# See docs/adr/0027-configuration.md.
WHAT_IT_IS = {
    "preset",
    "oracle",
    "arrival",
    "data_kind",
    "classes",
    "merged_classes",
    "renamed_classes",
    "columns",
    "image_height",
    "image_width",
}
ACCOUNTS = {"privacy_unit", "pool_account", "labels_account"}
EDITED = {"slug", "name", "question", "guidelines", "guidelines_version", "second_manager"}
BOOKKEEPING = {"id", "state", "labels_used_through", "labels_used_at", "configuration", "created_by", "created_at"}


def test_every_column_has_one_of_four_reasons():
    reasons = (WHAT_IT_IS, ACCOUNTS, EDITED, BOOKKEEPING)
    columns = {field.name for field in Project._meta.concrete_fields}
    assert columns == set().union(*reasons)
    assert len(columns) == sum(map(len, reasons))


def test_nothing_that_a_choice_declares_is_a_column():
    declared = {*CATALOGUE.parameters(), *KEYS}
    assert len(declared) > 50
    assert not declared & COLUMNS
