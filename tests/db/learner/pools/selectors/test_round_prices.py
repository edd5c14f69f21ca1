from contextlib import contextmanager

import pytest
from django.db import transaction

from annotation.models import WorkState
from annotation.work.services.attempts import cancel_work
from learner.models import Round
from learner.pools import attempts
from learner.pools.prices import round_price
from learner.pools.selectors import training_event
from learner.rounds import failures
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import loop
from privacy.accounting.cost import epsilon_to_nano
from privacy.ledger.models import LedgerEntry
from privacy.ledger.selectors import guarantee
from tests import learning
from tests.dying import Killed, die_at
from tests.factories import make_user, write_settings

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def dying_at(step, module):
    with pytest.MonkeyPatch.context() as patched:
        die_at(patched, step, module)
        yield


def end(chosen) -> None:
    with transaction.atomic():
        attempts.ChargedEnding().give_up(Round.objects.get(pk=chosen.pk), "It did not end well.")
    chosen.refresh_from_db()


def start_with(project) -> None:
    """Bring public examples, so that the first round has a model to score with."""
    texts = learning.sentences(40, seed=9)
    rows = [[text, learning.CLASSES[learning.truth_of(text)]] for text in texts]
    learning.upload(project, rows, ["text", "label"], role="public_start")


def experts(*, started: bool = True, records: int = 80, **settings):
    project = learning.open_trusted(make_user(), **settings)
    if started:
        start_with(project)
    learning.fill_trusted(project, number=records)
    return project


def after_a_release(project):
    learning.run_to_release(project, make_user(), version=1)
    return project


def secret(**settings):
    project = learning.open_secret(make_user(), **settings)
    learning.fill_trusted(project, number=300)
    return project


CASES = {
    "random": (lambda: experts(started=False, selection="random"), "random_choice"),
    "top-c before a model": (lambda: experts(started=False), "random_choice"),
    "top-c, opened": (experts, "top_c"),
    "top-c, continued": (lambda: after_a_release(experts()), "top_c"),
    "top-c of fewer records than a round": (lambda: experts(records=5), "top_c"),
    "top-c of fewer records than a round that are left": (lambda: after_a_release(experts(records=17)), "top_c"),
    "top-c of fewer answers than a round": (lambda: experts(labels_limit=7), "top_c"),
    "a secret block": (secret, "secret_choice"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_price_is_what_the_round_reserves(name):
    """The flaw: top-c was told to cost what it does among all records ever there."""
    prepare, mechanism = CASES[name]
    project = prepare()
    told = round_price(project)
    assert round_price(project, before_upload=True).epsilon >= told.epsilon
    loop.advance_project(project_id=project.pk)
    chosen = Round.objects.get(state=WorkState.WAITING)
    loop.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    assert (chosen.state, chosen.reservation.mechanism) == (WorkState.DONE, mechanism)
    assert chosen.reservation.epsilon_nano == epsilon_to_nano(told.epsilon)
    assert (told.epsilon > 0) == (mechanism not in ("random_choice", "secret_choice"))


def test_a_round_after_an_attempt_that_died_is_told_at_the_price_of_a_new_series():
    project = after_a_release(experts())
    continued = round_price(project)
    loop.advance_project(project_id=project.pk)
    chosen = Round.objects.get(state=WorkState.WAITING)
    with pytest.raises(Killed), dying_at("round_chosen", loop):
        loop.run_round(round_id=chosen.pk)
    end(chosen)
    told = failures.price_of(project, chosen)
    assert told.epsilon == pytest.approx(continued.epsilon + 0.25, abs=1e-8)
    again = loop.start_anew(row=Round.objects.get(pk=chosen.pk))
    loop.run_round(round_id=again.pk)
    again.refresh_from_db()
    assert again.reservation.epsilon_nano == epsilon_to_nano(told.epsilon)


def test_no_upload_makes_a_round_dearer_than_was_told_before_it():
    project = learning.open_trusted(make_user())
    start_with(project)
    told = round_price(project, before_upload=True).epsilon
    reached = []
    for more in (3, 8, 1, 1, 30):
        learning.upload(project, [[text] for text in learning.sentences(more)], ["text"])
        reached.append(round_price(project).epsilon)
    # Three records, eleven, twelve, which is a round, thirteen and 43.
    assert max(reached) == reached[2] == told
    assert reached[0] < reached[1] < reached[2] > reached[3] > reached[4]


def test_a_round_started_anew_for_no_answer_charges_nothing():
    project = experts()
    loop.advance_project(project_id=project.pk)
    first = Round.objects.get()
    assert cancel_work(row=first, by="ada")
    write_settings(project, labels_limit=0)
    again = loop.start_anew(row=Round.objects.get(pk=first.pk))
    loop.run_round(round_id=again.pk)
    again.refresh_from_db()
    assert (again.requested, again.state, again.error) == (0, WorkState.FAILED, loop.ANSWERS_SPENT)
    assert not LedgerEntry.objects.filter(kind="reserve", account=project.pool_account).exists()


class TestNothingLeftForTheModel:
    """The flaw: a round paid for its choice and asked people, and nothing was left to train on their answers."""

    @staticmethod
    def too_dear(**settings):
        return experts(**{"selection_epsilon": 2.4, "training_epsilon": 3.0, "pool_epsilon": 6.0} | settings)

    def test_it_is_said_before_anybody_is_asked(self):
        project = self.too_dear()
        training, choice = training_event(project).cost().epsilon, round_price(project).epsilon
        assert max(training, choice) < 6.0 < training + choice
        status = loop.advance_project(project_id=project.pk)
        assert status.step == Step.CANNOT_PAY
        assert "the next questions and the model trained on them" in status.sentence
        assert not Round.objects.exists()
        assert not learning.entries(project, "reserve")

    def test_what_is_enough_for_both_goes_on(self):
        project = self.too_dear(pool_epsilon=7.5)
        learning.run_to_release(project, make_user(), version=1)
        assert guarantee(project.pool_account).epsilon_left < 1
        assert project_status(project).step == Step.CANNOT_PAY

    @pytest.mark.parametrize("ended", [True, False])
    def test_an_attempt_that_died_is_charged_and_nothing_after_it(self, ended):
        """Whether the round ended with it, or another worker takes it up."""
        project = self.too_dear(pool_epsilon=9.0)
        loop.advance_project(project_id=project.pk)
        chosen = Round.objects.get()
        with pytest.raises(Killed), dying_at("round_chosen", loop):
            loop.run_round(round_id=chosen.pk)
        if ended:
            end(chosen)
        else:
            Round.objects.update(leased_until="2000-01-01T00:00Z")
            loop.run_round(round_id=chosen.pk)
            chosen.refresh_from_db()
            assert chosen.state == WorkState.FAILED
            assert "the next questions and the model trained on them" in chosen.error
        assert loop.advance_project(project_id=project.pk).step == Step.CANNOT_PAY
        assert len(learning.entries(project, "reserve")) == 1
        assert not learning.entries(project, "commit")
        assert not project.queries.exists()

    def test_a_manager_who_starts_it_anew_pays_for_nothing_either(self):
        project = self.too_dear(pool_epsilon=9.0)
        loop.advance_project(project_id=project.pk)
        chosen = Round.objects.get()
        with pytest.raises(Killed), dying_at("round_chosen", loop):
            loop.run_round(round_id=chosen.pk)
        end(chosen)
        again = loop.start_anew(row=Round.objects.get(pk=chosen.pk))
        loop.run_round(round_id=again.pk)
        again.refresh_from_db()
        assert again.state == WorkState.FAILED
        assert len(learning.entries(project, "reserve")) == 1
