"""The admin's pages: opening a project, its people, its budget, its data, and who may see which."""

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotation.budget import charges
from annotation.choices.presets import PRESETS
from annotation.data.services import datasets
from annotation.gates import services as gates
from annotation.models import Dataset, Membership, Project, Role
from annotation.projects.services import opening
from privacy.ledger import services as ledger
from privacy.ledger.models import EntryKind, LedgerEntry
from privacy.ledger.selectors import guarantee
from tests import learning
from tests.clients import browser_of
from tests.factories import make_opener, receive_upload
from tests.openings import look, open_by

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("reads_here")]


@pytest.fixture
def manager() -> User:
    return make_opener("manager")


@pytest.fixture
def crowd(manager: User) -> Project:
    return opening.create_project(
        name="Voice queries",
        preset="voice-crowd",
        owner=manager,
        data_kind="text",
        classes=["music", "other"],
        question="What does this person want?",
        **learning.PAID_EACH_TRAINING,
    )


def form_of(preset: str, **changes: object) -> dict[str, object]:
    basic = {
        "name": "Invoices",
        "question": "Is this fraud?",
        "classes": "fraud\nhonest",
        "data_kind": PRESETS[preset].data_kinds[0],
    }
    return {**PRESETS[preset].defaults, **basic, **changes}


def test_an_opened_project_has_its_accounts_and_its_manager(manager: User) -> None:
    response = open_by(browser_of(manager), "pool-experts", form_of("pool-experts"))
    project = Project.objects.get()
    assert response.status_code == 302
    assert project.classes == ["fraud", "honest"]
    assert project.labels_account is None
    assert guarantee(project.pool_account).epsilon_limit == PRESETS["pool-experts"].defaults["pool_epsilon"]
    assert Membership.objects.get(project=project).role == Role.MANAGER


def test_the_preset_for_experts_labels_in_secret_and_says_what_it_costs(manager: User) -> None:
    page = look(browser_of(manager), "pool-experts").content.decode()
    assert "cost epsilon 0.59 + 1.41 and delta 5e-6" in page
    offered = [value for value in ("secret_sample", "top_c", "random", "uncertainty") if f'value="{value}"' in page]
    assert offered == ["secret_sample", "top_c", "random"]
    open_by(browser_of(manager), "pool-experts", form_of("pool-experts"))
    project = Project.objects.get()
    assert (project.selection, project.selection_rate) == ("secret_sample", 0.1)


def test_a_table_project_keeps_its_declared_columns(manager: User) -> None:
    columns = "amount: 0 to 5000\ncountry: NO, SE, DK"
    open_by(browser_of(manager), "pool-experts", form_of("pool-experts", data_kind="table", columns=columns))
    assert Project.objects.get().columns == [
        {"name": "amount", "low": 0.0, "high": 5000.0},
        {"name": "country", "categories": ["NO", "SE", "DK"]},
    ]


def test_a_gate_the_pool_cannot_pay_for_is_refused(manager: User) -> None:
    response = open_by(
        browser_of(manager), "voice-crowd", form_of("voice-crowd", gate_kind="k_anonymity", gate_epsilon=0.5, gate_k=2)
    )
    assert response.status_code == 422
    assert "delta" in str(response.context["form"].errors)


def test_a_limit_is_raised_with_a_reason_that_stays(crowd: Project, manager: User) -> None:
    url = reverse("annotation:change_limit", args=[crowd.slug, crowd.pool_account_id])
    assert browser_of(manager).post(url, {"epsilon_limit": 5, "delta_limit": 1e-4, "reason": ""}).status_code == 422
    browser_of(manager).post(url, {"epsilon_limit": 5, "delta_limit": 1e-4, "reason": "second upload agreed"})
    entry = LedgerEntry.objects.get(account=crowd.pool_account, kind=EntryKind.LIMIT_CHANGE)
    assert (entry.reason, entry.actor) == ("second upload agreed", "manager")
    crowd.pool_account.refresh_from_db()
    assert guarantee(crowd.pool_account).epsilon_limit == 5


def test_the_budget_page_says_what_is_promised_and_spent(crowd: Project, manager: User) -> None:
    page = browser_of(manager).get(reverse("annotation:budget", args=[crowd.slug])).content.decode()
    assert "of 3.000 ε" in page
    assert "Limit: ε" in page
    assert guarantee(crowd.pool_account).chain_head in page


def start_fields(**changed: object) -> dict[str, object]:
    file = SimpleUploadedFile("known.csv", b"text,class\nplay jazz,music\n")
    fields = {"role": "charged_start", "text_column": "text", "label_column": "class", "has_header": "on"}
    return {**fields, "file": file, "bad_rows": "keep_good", **changed}


def test_a_private_start_is_uploaded_with_the_limit_of_its_own_account(crowd: Project, manager: User) -> None:
    url = reverse("annotation:data", args=[crowd.slug])
    client = browser_of(manager)
    assert "An account of its own with this limit" in client.get(url).content.decode()
    missing = client.post(url, start_fields())
    assert missing.status_code == 422
    assert "start_epsilon" in missing.context["form"].errors
    small = client.post(url, start_fields(start_epsilon=crowd.settings["training_epsilon"] / 2))
    assert "too small for the training" in str(small.context["form"].errors)
    assert not Dataset.objects.exists()
    limit = crowd.settings["training_epsilon"] * 2
    assert client.post(url, start_fields(start_epsilon=limit)).status_code == 302
    stored = Dataset.objects.get()
    assert stored.account is not None
    assert (stored.account.unit, guarantee(stored.account).epsilon_limit) == ("record", pytest.approx(limit))
    again = client.post(url, start_fields(start_epsilon=limit))
    assert "already has a private start" in str(again.context["form"].errors)
    page = client.get(reverse("annotation:budget", args=[crowd.slug])).content.decode()
    assert "Private start" in page
    assert "Each private example is protected" in page
    # Counting it whole would be a look nobody paid for.
    Dataset.objects.update(state="ready")
    survey = reverse("annotation:survey", args=[crowd.slug, stored.pk])
    assert client.post(survey).status_code == 404


def test_people_come_and_go_but_the_manager_cannot_lock_the_project(crowd: Project, manager: User) -> None:
    User.objects.create_user("ann")
    client = browser_of(manager)
    people = reverse("annotation:people", args=[crowd.slug])
    assert client.post(people, {"username": "nobody", "role": "annotator"}).status_code == 422
    client.post(people, {"username": "ann", "role": "annotator"})
    membership = Membership.objects.get(user__username="ann")
    client.post(reverse("annotation:remove_member", args=[crowd.slug, membership.pk]))
    own = Membership.objects.get(user=manager)
    client.post(reverse("annotation:remove_member", args=[crowd.slug, own.pk]))
    assert list(Membership.objects.all()) == [own]


def test_a_token_is_shown_once_and_revoked(manager: User) -> None:
    client = browser_of(manager)
    page = client.post(reverse("annotation:tokens"), {"name": "ci", "scopes": ["models:read"], "days": 30})
    token = manager.api_tokens.get()
    assert "dpal_" in page.content.decode()
    assert "dpal_" not in client.get(reverse("annotation:tokens")).content.decode()
    stranger = browser_of(User.objects.create_user("stranger"))
    assert stranger.post(reverse("annotation:revoke_token", args=[token.pk])).status_code == 404
    client.post(reverse("annotation:revoke_token", args=[token.pk]))
    token.refresh_from_db()
    assert token.revoked_at


def test_a_refused_gate_says_why_and_can_be_sent_again(crowd: Project, manager: User) -> None:
    rows = "".join(f"play jazz,person {n}\n" for n in range(3))
    dataset = receive_upload(
        project=crowd,
        file=SimpleUploadedFile("log.csv", f"text,person\n{rows}".encode()),
        name="log.csv",
        role="pool",
        bad_rows="keep_good",
        mapping={"text": "text", "contributor": "person", "has_header": True},
        uploaded_by=manager,
    )
    datasets.import_dataset(job_id=dataset.job_id)
    ledger.change_account_limits(
        account=crowd.pool_account, epsilon_limit=0.1, delta_limit=3e-5, actor=manager, reason="less"
    )
    dataset.refresh_from_db()
    gates.run_gate(job_id=dataset.gate_job_id)
    client = browser_of(manager)
    page = client.get(reverse("annotation:data", args=[crowd.slug])).content.decode()
    assert "gate again" in page
    ledger.change_account_limits(
        account=crowd.pool_account, epsilon_limit=3.0, delta_limit=3e-5, actor=manager, reason="again"
    )
    again = reverse("annotation:start_gate", args=[crowd.slug, dataset.pk])
    agreed = {"agreed": charges.token_of(charges.gate_charge(crowd))}
    client.post(again, agreed)
    dataset.refresh_from_db()
    gates.run_gate(job_id=dataset.gate_job_id)
    page = client.get(reverse("annotation:data", args=[crowd.slug])).content.decode()
    assert "Nothing passed the gate" in page
    assert "already went through the gate" in client.post(again, agreed, follow=True).content.decode()


SELECTION_SETTINGS = {
    "secret_sample": {"selection_rate", "block_growth", "block_hours"},
    "top_c": {"selection_epsilon", "round_size", "labels_per_release"},
    "random": {"round_size", "labels_per_release"},
}
ALL_SETTINGS = set.union(*SELECTION_SETTINGS.values())


def new_project_page(manager: User, preset: str, data: dict[str, object] | None = None):
    return look(browser_of(manager), preset, data)


def shown_in(response) -> set[str]:
    return set(response.context["form"].fields)


def test_a_page_shows_what_the_preset_uses(manager: User) -> None:
    shown = shown_in(new_project_page(manager, "pool-experts"))
    assert shown & ALL_SETTINGS == SELECTION_SETTINGS["secret_sample"]
    assert "training_delta" in shown
    assert not shown & {"columns", "image_height", "step_size", "gate_k", "regularization"}
    convex = form_of("pool-experts", estimator="logistic")
    assert "regularization" in shown_in(new_project_page(manager, "pool-experts", convex))
    crowd = shown_in(new_project_page(manager, "voice-crowd"))
    assert {"gate_delta", "gate_floor", "label_randomizer", "answers_epsilon", "round_size"} < crowd
    others = {"gate_k", "gate_sampling_rate", "selection_rate", "screen_high", "training_delta"}
    assert not crowd & (others | {"uncertainty_measure", "repeat_votes"})
    sent = form_of("voice-crowd", selection="uncertainty")
    ranked = shown_in(new_project_page(manager, "voice-crowd", sent))
    assert {"gate_delta", "gate_floor", "uncertainty_measure", "repeat_votes", "round_size"} < ranked
    assert not ranked & others


@pytest.mark.parametrize("selection", SELECTION_SETTINGS)
def test_the_page_shows_the_settings_of_a_choice_and_keeps_what_was_typed(manager: User, selection: str) -> None:
    sent = form_of("pool-experts", selection=selection, classes="", name="Kept")
    response = new_project_page(manager, "pool-experts", sent)
    assert response.status_code == 200
    assert not response.context["form"].errors
    expected = SELECTION_SETTINGS[selection]
    assert expected <= shown_in(response) & ALL_SETTINGS <= expected | {"labels_per_release"}
    page = response.content.decode()
    assert 'value="Kept"' in page
    assert not Project.objects.exists()


@pytest.mark.parametrize(
    ("choice", "fields"),
    [
        ({"estimator": "softmax_steps"}, {"training_delta"}),
        ({"estimator": "logistic"}, {"regularization"}),
        ({"data_kind": "table"}, {"columns"}),
        ({"data_kind": "image"}, {"image_height", "image_width", "image_colours", "feature_dimension"}),
    ],
)
def test_models_and_data_have_their_own_settings(manager: User, choice: dict[str, object], fields: set[str]) -> None:
    sent = form_of("pool-experts", estimator="logistic") | choice
    response = new_project_page(manager, "pool-experts", sent)
    others = {"training_delta", "columns"}
    others |= {"image_height", "image_width", "image_colours"}
    assert fields <= shown_in(response)
    assert not shown_in(response) & (others - fields)


def test_what_a_choice_does_not_use_stays_at_its_default(manager: User) -> None:
    """Left over from another choice, a field would otherwise be refused where nobody can see it."""
    left_over = {"drop_unselected": "on", "training_delta": "1e-6", "screen_high": "7"}
    sent = form_of("pool-experts", selection="random", estimator="logistic") | left_over
    assert open_by(browser_of(manager), "pool-experts", sent).status_code == 302
    project = Project.objects.get()
    assert project.training_delta == 0.0
    assert "screen_high" not in project.settings
    assert project.drop_unselected is False
