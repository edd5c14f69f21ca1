import pytest

from annotation.errors import InvalidConfiguration
from annotation.projects.services.configuring import configure_project
from learner.errors import SharesRefused
from learner.models import Grouping, ModelRelease
from learner.pools import selectors
from learner.shares.services import ask_shares
from learner.simulation.selectors import plan_forecast
from privacy.accounting.event import event_from_json
from privacy.ledger.audit import audit_accounts
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import guarantee
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
MANY = {
    "selection": "random",
    "estimator": "sums",
    "features": "planned",
    "text_columns": 16,
    "training_epsilon": 0.4,
    "training_delta": 1e-6,
    "pool_epsilon": 2.0,
    "pool_delta": 5e-6,
    "maximum_releases": None,
}


@pytest.fixture
def project():
    opened = learning.open_trusted(make_user(), **MANY)
    learning.fill_trusted(opened)
    return opened


def test_each_release_is_charged_its_rho_and_the_noise_is_what_was_declared(project):
    assert project.pool_account.filter == "zcdp"
    learning.run_to_release(project, make_user(), version=2)
    charged = [event_from_json(release.entry.parent.event) for release in ModelRelease.objects.order_by("version")]
    assert [(event.kind, event.inner.kind) for event in charged] == [("picked_fit", "sums")] * 2
    for event in charged:
        assert (event.cost().delta, event.delta) == (0.0, 0.0)
    now = guarantee(project.pool_account)
    assert now.rho_spent == pytest.approx(sum(event.cost().rho for event in charged), abs=1e-8)
    assert now.epsilon_spent < 2 * 0.4
    assert now.delta_spent == pytest.approx(5e-6)
    [verdict] = audit_accounts(scope=project.pool_account.scope, marks=None)
    assert verdict.differing == 0


def test_a_price_is_the_epsilon_it_adds_now(project):
    before = selectors.training_price(project)
    learning.run_to_release(project, make_user(), version=1)
    spent = guarantee(project.pool_account).epsilon_spent
    assert spent == pytest.approx(before.epsilon)
    assert 0 < selectors.training_price(project).epsilon < before.epsilon
    following = plan_forecast(project, records=4000)
    assert following.releases > 5
    assert following.next_training == selectors.training_event(project)


def test_before_the_first_charge_the_account_follows_the_settings(project):
    first = project.pool_account
    configure_project(project=project, changes={"selection": "secret_sample"}, actor=project.created_by)
    project.refresh_from_db()
    assert project.pool_account.filter == "pure"
    assert project.pool_account.delta_limit_atto == first.delta_limit_atto
    configure_project(project=project, changes={"selection": "random"}, actor=project.created_by)
    project.refresh_from_db()
    assert project.pool_account.filter == "zcdp"
    assert BudgetAccount.objects.filter(scope__startswith=f"project:{project.slug}:pool").count() == 3


def test_what_has_no_rho_is_refused_once_something_was_charged(project):
    learning.run_to_release(project, make_user(), version=1)
    with pytest.raises(InvalidConfiguration, match="sums rhos"):
        configure_project(project=project, changes={"selection": "secret_sample"}, actor=project.created_by)


def test_shares_need_a_sample_that_has_no_rho(project):
    assert project.pool_account.filter == "zcdp"
    for grouping in (Grouping.WHOLE, Grouping.CONFIDENCE):
        with pytest.raises(SharesRefused, match="secret sample"):
            ask_shares(project=project, block=1, grouping=grouping, column="", actor=project.created_by)
