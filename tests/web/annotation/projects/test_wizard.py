import re
from dataclasses import replace
from itertools import pairwise

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from annotation.choices.catalogue import declaration_of
from annotation.choices.presets import PRESETS
from annotation.models import Project
from annotation.models.configurations import settings_in
from annotation.projects.forms.wizard import WizardStep, draft_form, step_fields, step_of
from privacy.ledger.selectors import guarantee
from tests import learning
from tests.clients import browser_of
from tests.factories import make_user

pytestmark = pytest.mark.django_db

TASK = {"name": "Invoices", "question": "Is this fraud?", "classes": "fraud\nhonest"}


@pytest.fixture
def client() -> Client:
    user: User = make_user("opener")
    user.user_permissions.add(Permission.objects.get(codename="add_project"))
    return browser_of(user)


def at(preset: str, step: str) -> str:
    return reverse("annotation:wizard", args=[preset, step])


def sent_from(client: Client, preset: str, step: str, **changes: object) -> dict[str, object]:
    page = client.get(at(preset, step))
    assert page.status_code == 200
    fields = list(page.context["fields"]) + (list(page.context["level"]) if page.context.get("level") else [])
    values = {bound.name: bound.value() for bound in fields}
    sent = {name: "on" if value is True else value for name, value in values.items() if value not in (None, False)}
    return sent | changes


def go_on(client: Client, preset: str, step: str, **changes: object):
    return client.post(at(preset, step), sent_from(client, preset, step, **changes))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_opens_by_going_on(client: Client, preset: str) -> None:
    task = TASK | ({"columns": "amount: 0 to 9"} if PRESETS[preset].data_kinds[0] == "table" else {})
    steps = list(WizardStep)
    for step, following in pairwise(steps):
        response = go_on(client, preset, step, **(task if step == WizardStep.TASK else {}))
        assert (response.status_code, response["Location"]) == (302, at(preset, following)), response.content.decode()
    response = client.post(at(preset, WizardStep.CHECK))
    project = Project.objects.get()
    assert response["Location"] == reverse("annotation:data", args=[project.slug])
    assert (project.preset, project.classes) == (preset, ["fraud", "honest"])
    for name, value in PRESETS[preset].defaults.items():
        if name not in ("pool_epsilon", "pool_delta", "labels_epsilon") and hasattr(project, name) and value:
            used = name not in Project.absent or name in settings_in(project.configuration_id)
            assert getattr(project, name) == value or not used, name
            assert used or declaration_of(name) is not None, name
    assert guarantee(project.pool_account).epsilon_limit == PRESETS[preset].defaults["pool_epsilon"]
    # What was typed is not the start of the next project.
    assert client.get(at(preset, WizardStep.TASK)).context["form"].initial.get("name") is None


def test_going_back_keeps_what_was_typed_even_where_it_is_wrong(client: Client) -> None:
    typed = TASK | {"classes": "only one", "guidelines": "Look twice.", "go": "protection"}
    response = go_on(client, "pool-experts", WizardStep.TASK, **typed)
    assert response["Location"] == at("pool-experts", WizardStep.PROTECTION)
    page = client.get(at("pool-experts", WizardStep.TASK)).content.decode()
    assert "Look twice." in page
    assert "only one" in page
    assert 'role="alert"' not in page


def test_going_on_with_a_mistake_names_it_and_keeps_what_was_typed(client: Client) -> None:
    response = go_on(client, "pool-experts", WizardStep.TASK, **(TASK | {"classes": "only one"}))
    assert response.status_code == 422
    assert "Name 2 to 1,000 different classes." in response.content.decode()
    assert "Is this fraud?" in response.content.decode()


@pytest.mark.parametrize(
    ("preset", "changes", "rule"),
    [
        ("voice-crowd", {"arrival": "stream"}, "A gate counts whole uploads"),
        ("pool-experts", {"privacy_unit": "contributor"}, "a contributor may have many"),
        ("fraud-stream", {"oracle": "crowd"}, "A gate counts whole uploads"),
        ("fraud-stream", {"privacy_unit": "contributor"}, "a contributor may have many"),
    ],
)
def test_a_combination_without_a_proof_is_refused_with_its_rule(
    client: Client, preset: str, changes: dict[str, str], rule: str
) -> None:
    response = go_on(client, preset, WizardStep.PROTECTION, **changes)
    assert response.status_code == 422
    assert rule in response.content.decode()


def test_another_oracle_brings_its_preset_and_keeps_the_task(client: Client) -> None:
    go_on(client, "pool-experts", WizardStep.TASK, **TASK)
    response = go_on(client, "pool-experts", WizardStep.PROTECTION, oracle="crowd", privacy_unit="record")
    assert response["Location"] == at("voice-crowd", WizardStep.TASK)
    assert "Is this fraud?" in client.get(response["Location"]).content.decode()
    crowd = client.get(at("voice-crowd", WizardStep.QUESTIONS)).content.decode()
    assert "not all records of one person together" in crowd


def test_a_new_choice_shows_its_settings_before_going_on(client: Client) -> None:
    response = go_on(client, "pool-experts", WizardStep.QUESTIONS, selection="top_c")
    assert response["Location"] == at("pool-experts", WizardStep.QUESTIONS)
    page = client.get(response["Location"])
    assert "selection_epsilon" in {bound.name for bound in page.context["fields"]}
    assert go_on(client, "pool-experts", WizardStep.QUESTIONS)["Location"] == at("pool-experts", WizardStep.MODEL)


def test_an_unticked_box_stays_unticked(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the preset ticks it."""
    preset = PRESETS["voice-crowd"]
    ticked = replace(preset, defaults={**preset.defaults, **learning.PAID_EACH_TRAINING})
    monkeypatch.setitem(PRESETS, "voice-crowd", ticked)
    sent = sent_from(client, "voice-crowd", WizardStep.QUESTIONS)
    assert sent.pop("repeat_votes") == "on"
    client.post(at("voice-crowd", WizardStep.QUESTIONS), sent)
    go_on(client, "voice-crowd", WizardStep.TASK, **TASK)
    client.post(at("voice-crowd", WizardStep.CHECK))
    assert Project.objects.get().repeat_votes is False


def test_a_named_limit_is_the_limit_and_says_what_it_means(client: Client) -> None:
    go_on(client, "pool-experts", WizardStep.TASK, **TASK)
    response = go_on(client, "pool-experts", WizardStep.BUDGET, level="loose", people="1000000")
    assert response["Location"] == at("pool-experts", WizardStep.CHECK)
    page = client.get(response["Location"]).content.decode()
    # e^10 / (1 + e^10), rounded up, and never to all; and 5e-6 is more than a million to the power -1.1.
    assert "at most 99.996 %" in page
    assert "100.0 %" not in page
    assert "recommended for 1,000,000" in page
    client.post(at("pool-experts", WizardStep.CHECK))
    assert guarantee(Project.objects.get().pool_account).epsilon_limit == 10


def test_each_named_limit_is_a_card_with_what_it_means(client: Client) -> None:
    page = client.get(at("pool-experts", WizardStep.BUDGET)).content.decode()
    cards = re.findall(r'<div class="choice-card">(.*?)</div>', page, re.DOTALL)
    assert [re.search(r'value="(\w+)"', card).group(1) for card in cards] == ["strict", "moderate", "loose", "own"]
    # e / (1 + e) and e^3 / (1 + e^3), rounded up, with a delta far below a thousandth.
    for card, name, right in zip(cards, ("strict: ε 1", "moderate: ε 3"), ("73.2", "95.3"), strict=False):
        assert name in card
        assert f"A guess is right at most {right} % of the time" in card


def test_a_limit_too_small_for_what_was_chosen_is_refused_at_the_limit(client: Client) -> None:
    go_on(client, "confirm-or-reject", WizardStep.MODEL, training_epsilon="1.9")
    response = go_on(client, "confirm-or-reject", WizardStep.BUDGET, level="strict")
    assert response.status_code == 422
    assert "The stream pays once" in response.content.decode()


def test_the_last_step_shows_every_setting_with_default_and_effect_and_refuses_what_is_wrong(client: Client) -> None:
    response = client.post(at("pool-experts", WizardStep.CHECK))
    assert response.status_code == 422
    assert at("pool-experts", WizardStep.TASK) in response.content.decode()
    assert not Project.objects.exists()
    go_on(client, "pool-experts", WizardStep.QUESTIONS, selection_rate="0.2")
    groups = client.get(at("pool-experts", WizardStep.CHECK)).context["groups"]
    settings = [setting for group in groups for setting in group["settings"]]
    assert all(setting.effect for setting in settings)
    rate = next(setting for setting in settings if setting.label.startswith("Secret sample: rate"))
    assert (rate.value, rate.default, rate.changed) == ("0.2", "0.1", True)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_steps_ask_for_every_setting_once(preset: str) -> None:
    form = draft_form(PRESETS[preset], {})
    asked = [bound.name for step in WizardStep for bound in step_fields(form, step)]
    assert len(asked) == len(set(asked))
    assert set(form.fields) - set(asked) <= {"privacy_unit"}
    assert all(form.fields[name].help_text for name in form.fields), "every setting says what it does"
    assert step_of("name") == WizardStep.TASK


def test_forgetting_starts_again(client: Client) -> None:
    go_on(client, "pool-experts", WizardStep.TASK, **TASK)
    client.post(at("pool-experts", WizardStep.TASK), {"forget": "1"})
    assert "Is this fraud?" not in client.get(at("pool-experts", WizardStep.TASK)).content.decode()


@pytest.mark.parametrize("address", [("nothing", "task"), ("pool-experts", "nothing")])
def test_other_addresses_do_not_exist(client: Client, address: tuple[str, str]) -> None:
    assert client.get(reverse("annotation:wizard", args=address)).status_code == 404


def test_a_project_named_like_the_page_that_opens_one_has_another_address(client: Client) -> None:
    go_on(client, "pool-experts", WizardStep.TASK, **(TASK | {"name": "New"}))
    client.post(at("pool-experts", WizardStep.CHECK))
    assert Project.objects.get().slug == "new-2"


@pytest.mark.parametrize(
    ("typed", "price"),
    [
        ({}, 2.195),
        ({"pool_epsilon": "1"}, 1.146),
        ({"selection_rate": "0.8"}, 2.195),
        ({"maximum_releases": "1"}, 4.172),
        ({"selection": "random"}, 1.999),
        # What was typed for another selection is read, whatever page sent it.
        ({"selection": "random", "selection_epsilon": "0.3", "selection_rate": "0.1"}, 1.999),
        ({"pool_epsilon": "1", "training_epsilon": "2.195"}, 1.146),
        ({"pool_epsilon": "1", "training_epsilon": "0.3"}, 0.3),
        # What cannot be read is told at its field, and nothing follows from it.
        ({"pool_epsilon": "much"}, 2.195),
        ({"selection_rate": "7"}, 2.195),
    ],
)
def test_the_price_of_a_training_follows_the_limit_until_somebody_types_one(typed, price):
    form = draft_form(PRESETS["pool-experts"], typed, assumed=True)
    assert float(form.data["training_epsilon"]) == price


@pytest.mark.parametrize(
    ("typed", "columns"),
    [
        ({}, "256"),
        ({"classes": "one\ntwo\nthree"}, "128"),
        ({"classes": "\n".join(map(str, range(31)))}, "192"),
        ({"classes": "\n".join(map(str, range(31))), "text_columns": "64"}, "64"),
        ({"classes": "\n".join(map(str, range(31))), "features": "static_encoder"}, "128"),
    ],
)
def test_many_classes_are_told_apart_by_more_columns_and_two_by_all(typed, columns):
    assert draft_form(PRESETS["pool-experts"], typed, assumed=True).data["text_columns"] == columns
