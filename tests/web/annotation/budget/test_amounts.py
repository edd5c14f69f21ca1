"""Epsilon and delta at every door: read as typed, bounded, stored exactly, and printed so that they add up."""

import html
import re
from decimal import Decimal
from uuid import uuid4

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils import translation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation.budget.words import exact_words
from annotation.choices.form_fields import DecimalMarkField, DeltaField, EpsilonField
from annotation.choices.planned_settings import planned_settings
from annotation.choices.presets import PRESETS
from annotation.models import Role
from learner.simulation.reading import with_given
from privacy.accounting.cost import LEAST_EPSILON_LIMIT, MOST_EPSILON_LIMIT
from privacy.accounting.events import MinibatchSgdEvent
from privacy.ledger import services as ledger
from privacy.ledger.models import AccountUnit
from privacy.ledger.selectors import guarantee
from tests import learning
from tests.clients import browser_of
from tests.factories import add_members, make_account, make_project, make_user
from tests.programs import Program

OUT_OF_RANGE = ["1e300", "1e9", "2e5", "1e-9", "-1", "nan", "inf"]


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_comma_is_a_decimal_mark_and_never_left_out(language):
    with translation.override(language):
        assert [DecimalMarkField().clean(text) for text in ("0,5", "0.5", "1e-5", " 2 ")] == [0.5, 0.5, 1e-5, 2.0]
        for text in ("1.000,5", "1,000,000", "0;5", "five"):
            with pytest.raises(ValidationError):
                DecimalMarkField().clean(text)
    assert 'type="text"' in EpsilonField().widget.render("epsilon", "0.5")


@pytest.mark.parametrize("text", OUT_OF_RANGE)
def test_a_form_refuses_what_no_account_can_promise(text):
    with pytest.raises(ValidationError):
        EpsilonField().clean(text)
    if text != "1e-9":
        with pytest.raises(ValidationError):
            DeltaField().clean(text)
    with pytest.raises(ValueError, match="pool_epsilon must lie in"):
        with_given({}, {"pool_epsilon": text}, ["pool_epsilon"])


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    preset=st.sampled_from(list(PRESETS.values())),
    epsilon=st.floats(LEAST_EPSILON_LIMIT, MOST_EPSILON_LIMIT),
    exponent=st.floats(-18, -0.31),
)
def test_every_limit_that_is_taken_can_be_planned_for(preset, epsilon, exponent):
    chosen = {**preset.defaults, "oracle": preset.oracle, "classes": ["a", "b", "c"]}
    chosen.setdefault("data_kind", preset.data_kinds[0])
    planned_settings(chosen | {"pool_epsilon": epsilon, "pool_delta": 10**exponent})


@pytest.mark.django_db(transaction=True)
def test_rest_answers_422_to_what_no_account_can_promise():
    manager = make_user("manager")
    ask = Program(manager, learning.open_trusted(manager))
    for wrong in ({"epsilon_limit": 1e300}, {"epsilon_limit": 2e5}, {"epsilon_limit": -1}, {"delta_limit": 1.0}):
        body = {"epsilon_limit": 25.0, "delta_limit": 0.0, "reason": "more"} | wrong
        assert ask("POST", "ledger/limits", body).status_code == 422


@pytest.mark.django_db
@given(epsilon=st.decimals("0.000001", "99999", places=6), delta=st.decimals("0.000000001", "0.4", places=9))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_typed_limit_is_stored_and_shown_as_typed_and_never_overspent(epsilon, delta):
    account = ledger.open_account(
        scope=f"typed:{uuid4()}",
        label="typed",
        unit=AccountUnit.RECORD,
        filter="pure",
        epsilon_limit=float(epsilon),
        delta_limit=float(delta),
        actor="ada",
        reason="a test",
    )
    assert (account.epsilon_limit_nano, account.delta_limit_atto) == (epsilon * 10**9, delta * 10**18)
    shown = guarantee(account)
    assert (shown.epsilon_limit, shown.delta_limit) == (float(epsilon), float(delta))


@pytest.mark.django_db(transaction=True)
def test_the_lines_of_a_statement_add_up_to_what_is_spent():
    project = make_project(pool_account=make_account(epsilon_limit=2.0, delta_limit=1e-6))
    engineer = make_user("engineer")
    add_members(project, engineer, role=Role.ENGINEER)
    for part in (7, 11, 13):
        event = MinibatchSgdEvent(part / 3, 3)
        ledger.reserve(account=project.pool_account, event=event, purpose="a test", key=uuid4())
    client = browser_of(engineer)
    page = html.unescape(client.get(reverse("annotation:statement", args=[project.slug])).content.decode())
    cells = re.findall(r'data-label="ε">([\d.]+)<', page)
    assert len(cells) >= 3
    spent = guarantee(project.pool_account).epsilon_spent
    assert sum(map(Decimal, cells)) == Decimal(exact_words(spent))
    assert Decimal(exact_words(spent)) <= 2
