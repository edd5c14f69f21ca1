import pytest

from annotation.models import WorkState
from annotation.people.services import limits
from learner.models import Round
from learner.pools.prices import round_price
from learner.pools.selectors import training_event
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import loop
from privacy.ledger.selectors import guarantee
from tests import learning
from tests.db.learner.pools.selectors.test_round_prices import dying_at, end
from tests.dying import Killed
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
VISIBLE = [({"selection": "top_c", "selection_epsilon": 0.5}, loop)]


def about_to_choose(**settings):
    project = learning.open_trusted(make_user(), **settings)
    learning.fill_trusted(project, number=150)
    learning.run_to_release(project, make_user(), version=1)
    choice, training = round_price(project).epsilon, training_event(project).cost().epsilon
    assert 0 < 1.1 * choice < choice + training
    spent = guarantee(project.pool_account).epsilon_spent
    limits.change_limit(
        project=project,
        account=project.pool_account,
        epsilon_limit=round(spent + choice + training + 0.1 * choice, 6),
        delta_limit=0.0,
        reason="less",
        actor=project.created_by,
    )
    assert loop.advance_project(project_id=project.pk).step == Step.CHOOSING
    return project, Round.objects.get(project=project, number=2)


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize(("selecting", "module"), VISIBLE)
def test_where_the_model_is_out_of_reach_no_second_attempt_is_charged(selecting, module, ended):
    """The flaw: the second attempt paid for questions whose answers no training could be paid for.

    Whether another worker takes the round up, or a manager starts it anew.
    """
    project, chosen = about_to_choose(**selecting)
    before = len(learning.entries(project, "reserve"))
    with pytest.raises(Killed), dying_at("round_chosen", module):
        loop.run_round(round_id=chosen.pk)
    left = guarantee(project.pool_account).epsilon_left
    assert round_price(project).epsilon < left < training_event(project).cost().epsilon + round_price(project).epsilon
    if ended:
        end(chosen)
        chosen = loop.start_anew(row=chosen)
    else:
        Round.objects.filter(pk=chosen.pk).update(leased_until="2000-01-01T00:00Z")
    loop.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    assert chosen.state == WorkState.FAILED
    assert "too little for the next questions and the model trained on them" in chosen.error
    # What the attempt that died was charged stays charged; nothing comes after it, and the page says the same.
    assert len(learning.entries(project, "reserve")) == before + 1
    assert len(learning.entries(project, "charge")) == 1
    assert learning.open_reservations(project) == 0
    assert not project.queries.filter(round_number__gt=1).exists()
    status = project_status(project)
    assert status.step == Step.CANNOT_PAY
    assert str(status.sentence).startswith(str(chosen.error))


@pytest.mark.parametrize(("selecting", "module"), VISIBLE)
def test_where_it_stays_payable_the_second_attempt_chooses(selecting, module):
    project, chosen = about_to_choose(**selecting)
    limits.change_limit(
        project=project,
        account=project.pool_account,
        epsilon_limit=20.0,
        delta_limit=0.0,
        reason="more",
        actor=project.created_by,
    )
    with pytest.raises(Killed), dying_at("round_chosen", module):
        loop.run_round(round_id=chosen.pk)
    Round.objects.filter(pk=chosen.pk).update(leased_until="2000-01-01T00:00Z")
    loop.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    assert (chosen.state, chosen.attempt) == (WorkState.DONE, 2)
    assert len(learning.entries(project, "charge")) == 1
