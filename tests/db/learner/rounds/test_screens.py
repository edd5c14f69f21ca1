import numpy as np
import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction

from annotation.models import Record, WorkState
from learner.models import Round, ScreenLooks, SecretDraw
from learner.models.rounds import PART_ROWS
from learner.pools import records as pool_selectors
from learner.pools.configuration import screen_of
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import loop
from learner.rounds.services import selection as rounds_selection
from learner.simulation.selectors import plan_forecast
from privacy.ledger import services as ledger
from tests import learning
from tests.factories import make_project, make_records, make_user, write_settings
from tests.owning import without_check

pytestmark = pytest.mark.django_db(transaction=True)


def test_looks_are_counted_up_only_and_the_rates_stay_whoever_writes():
    project = make_project(selection="exposure_capped_screen", screen_high=0.2)
    (record, _) = make_records(project, ["a", "b"])
    write_settings(project, screen_high=0.3)  # nobody has looked yet
    looks = ScreenLooks.objects.create(dataset=record.dataset, looks=bytes([1, 0]))
    ScreenLooks.objects.update(looks=bytes([1, 2]))
    for fewer in (bytes([0, 2]), bytes([1]), bytes([1, 2, 0])):
        with pytest.raises(IntegrityError, match="counted up only"):
            ScreenLooks.objects.update(looks=fewer)
    with pytest.raises(IntegrityError, match="goes with its project only"):
        looks.delete()
    for change in ({"screen_high": 0.2}, {"screen_low": 0.01}, {"exposures": 9}, {"selection": "random"}):
        with pytest.raises(IntegrityError, match="its rates stay"):
            write_settings(project, **change)
    write_settings(project, screen_reach=0.3, round_size=5)


@pytest.mark.parametrize("kind", ["looks", "coins"])
def test_no_row_has_a_place_in_two_parts_of_an_upload(kind):
    (record, _) = make_records(make_project(), ["a", "b"])
    model, field = (ScreenLooks, "looks") if kind == "looks" else (SecretDraw, "blocks")

    def store(first_row, rows):
        with transaction.atomic():
            model.objects.create(dataset=record.dataset, first_row=first_row, **{field: bytes(rows)})

    store(0, PART_ROWS)
    store(PART_ROWS, 1)
    for first_row, rows, rule in (
        (0, 1, "one_a_part"),
        (1, 1, "part_within"),
        (-PART_ROWS, 1, "part_within"),
        (2 * PART_ROWS, PART_ROWS + 1, "part_within"),
    ):
        with pytest.raises(IntegrityError, match=f"learner_{kind}_{rule}"):
            store(first_row, rows)


def test_looks_are_stored_in_parts_and_read_again_as_one(monkeypatch):
    monkeypatch.setattr(rounds_selection, "PART_ROWS", 64)
    with without_check("learner_screenlooks", "learner_looks_part_within"):
        project = screening("exposure_capped_screen", records=150)
        learning.run_to_release(project, make_user(), version=2)
        parts = list(ScreenLooks.objects.order_by("first_row"))
        assert [(part.first_row, len(part.looks)) for part in parts] == [(0, 64), (64, 64), (128, 22)]
        (dataset,) = {part.dataset for part in parts}
        together = np.frombuffer(b"".join(part.looks for part in parts), dtype=np.uint8)
        np.testing.assert_array_equal(pool_selectors.looks_at([dataset]), together)
        exposures = screen_of(project).exposures
        chosen = Record.objects.filter(query__round_number__gt=1).values_list("row_number", flat=True)
        assert (together[list(chosen)] == exposures).all()
        free = together < exposures
        free[list(Record.objects.filter(dataset=dataset, query__isnull=False).values_list("row_number", flat=True))] = 0
        assert pool_selectors.looks_left(project) == free.sum()


SETTINGS = {
    "exposure_capped_screen": {"screen_high": 0.5, "screen_low": 0.2, "exposures": 2},
    "bernoulli_screen": {"screen_high": 0.5, "screen_low": 0.2},
    "exponential_screen": {"selection_epsilon": 0.7},
}


def die_at(monkeypatch, step: str):
    class Killed(BaseException):
        pass

    def fault_point(reached: str) -> None:
        if reached == step:
            raise Killed

    for module in (rounds_selection, ledger):
        monkeypatch.setattr(module, "fault_point", fault_point)
    return Killed


def reserved(project) -> list[str]:
    return [entry.mechanism for entry in learning.entries(project, "reserve")]


def screening(selection: str, *, records: int = 80, **settings):
    project = learning.open_trusted(make_user(), selection=selection, **(SETTINGS[selection] | settings))
    learning.fill_trusted(project, number=records)
    return project


@pytest.mark.one_in(2)
@pytest.mark.parametrize("selection", SETTINGS)
def test_the_first_round_pays_for_all_and_every_look_is_counted(selection):
    # So many that coins of the lower rate alone bring the answers of three releases, but for one run in 10**9.
    project = screening(selection, records=400)
    learning.run_to_release(project, make_user(), version=3)
    assert Round.objects.get(number=1).strategy == "random"
    screens = [name for name in reserved(project) if name not in ("random_choice", "objective_perturbation")]
    assert screens[0] == "exposure_capped_screen"
    assert set(screens[1:]) <= {"screen_round"}
    screen = screen_of(project)
    opened = next(entry for entry in learning.entries(project, "reserve") if entry.mechanism == screens[0])
    high, low = screen.rates
    first, last = np.log(high / low), np.log((1 - low) / (1 - high))
    assert opened.epsilon_nano * 1e-9 == pytest.approx((screen.exposures - 1) * last + max(first, last), abs=1e-8)
    looks = np.frombuffer(ScreenLooks.objects.get().looks, dtype=np.uint8)
    assert looks.max() <= screen.exposures
    chosen = Record.objects.filter(query__round_number__gt=1).values_list("row_number", flat=True)
    assert (looks[list(chosen)] == screen.exposures).all()
    free = looks < screen.exposures
    free[
        list(Record.objects.filter(dataset__role="pool", query__isnull=False).values_list("row_number", flat=True))
    ] = 0
    assert ScreenLooks.objects.get().left == free.sum()
    assert learning.open_reservations(project) == 0


@pytest.mark.slow
def test_no_record_is_looked_at_once_too_often():
    """Rates so small that few are chosen: after so many passes the pool is used up, though most were never asked."""
    project = screening("exposure_capped_screen", screen_high=0.06, screen_low=0.05, maximum_releases=None)
    learning.run_to_release(project, make_user(), version=1)
    person = make_user()
    for _ in range(6):
        learning.work_off(project)
        learning.label_everything(project, person)
    learning.work_off(project)
    project.refresh_from_db()
    looks = np.frombuffer(ScreenLooks.objects.get().looks, dtype=np.uint8)
    assert looks.max() == 2
    assert Record.objects.filter(dataset__role="pool", query=None).count() > 20
    if project_status(project).step == Step.FEW_LABELS:
        loop.train_on_few(project=project)
        learning.work_off(project)
        project.refresh_from_db()
    assert project_status(project).step == Step.FINISHED
    assert reserved(project).count("exposure_capped_screen") == 1
    learning.upload(project, [[text] for text in learning.sentences(30, seed=5)], ["text"])
    assert project_status(project).step == Step.ASK


@pytest.mark.one_in(3)
@pytest.mark.parametrize("step", ["after_reserve", "round_chosen", "inside_commit"])
def test_coins_of_an_attempt_that_died_are_paid_for_again(monkeypatch, step):
    # So many that the coins leave enough questions for two models after it.
    project = screening("exposure_capped_screen", records=400)
    learning.run_to_release(project, make_user(), version=1)
    loop.advance_project(project_id=project.pk)
    chosen = Round.objects.get(state=WorkState.WAITING)
    killed = die_at(monkeypatch, step)
    with pytest.raises(killed):
        loop.run_round(round_id=chosen.pk)
    monkeypatch.undo()
    assert not ScreenLooks.objects.exists()
    Round.objects.filter(pk=chosen.pk).update(leased_until="2000-01-01T00:00Z")
    loop.run_round(round_id=chosen.pk)
    assert reserved(project).count("exposure_capped_screen") == 2
    assert [entry.mechanism for entry in learning.entries(project, "charge")] == ["exposure_capped_screen"]
    assert ScreenLooks.objects.get().left < 400
    learning.run_to_release(project, make_user(), version=3)
    assert reserved(project).count("exposure_capped_screen") == 2
    call_command("audit_ledger")


def test_the_forecast_walks_the_same_events():
    # So many that the coins leave enough questions for each of three models.
    project = screening("bernoulli_screen", records=400)
    told = plan_forecast(project)
    assert (told.releases, told.next_round.kind) == (3, "random_choice")
    learning.run_to_release(project, make_user(), version=1)
    assert plan_forecast(project).next_round.kind == "exposure_capped_screen"
    learning.run_to_release(project, make_user(), version=2)
    assert plan_forecast(project).next_round.kind == "screen_round"
