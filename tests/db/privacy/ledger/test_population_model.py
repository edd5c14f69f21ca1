"""Random schedules over projects that share people, beside a plain Python model of who may spend what.

The quick ones are drawn by Hypothesis, which shortens what it finds; DPAL_SCHEDULES sets how many each test runs. The
10,000 are drawn by a seeded generator (DPAL_SCHEDULE_SEED): forty short ones on each of many openings, undone one
by one, so that the time goes to what the database decides and not to opening accounts.
"""

import copy
import os
import random
from collections import Counter
from typing import ClassVar

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule, run_state_machine_as_test

from privacy import errors
from tests.db.privacy.ledger.population_schedules import PROJECTS, Held, World
from tests.owning import as_owner

SCHEDULES = int(os.environ.get("DPAL_SCHEDULES", "15"))
SEED = os.environ.get("DPAL_SCHEDULE_SEED", "20261123")
SLOW_SCHEDULES = 5000
STEPS = 20
# Of the seeded ones: steps of a schedule, schedules of an opening, and which of these the auditor reads in full.
SHORT_STEPS, OF_AN_OPENING, AUDITED = 7, 40, 20
KINDS = ["reserve"] * 10 + ["settle"] * 3 + ["join"] * 3 + ["change_limit"] * 2
WAYS = ["commit", "void", "charge"]
# What has to happen among so many schedules for them to show anything.
OUTCOMES = (
    "reserved",
    "reserved in both",
    "refused for itself",
    "refused for its people",
    *WAYS,
    "joined",
    "joined with a past",
    "refused for its past",
    "stays where it is",
    "limit: lowered",
    "limit: spent",
    "limit: annotation_limit_needs_second",
)


class Undone:
    """A savepoint that everything within is taken back to, so that the next schedule finds the tables as small."""

    def __enter__(self) -> None:
        self.before = transaction.savepoint()

    def __exit__(self, *exception: object) -> None:
        transaction.savepoint_rollback(self.before)
        transaction.savepoint_commit(self.before)
        # The counter's turn never comes; waiting for it, thousands of schedules would slow each rollback.
        connection.run_on_commit.clear()


class PopulationMachine(RuleBasedStateMachine):
    """Four projects, two populations; `filter` and `priced` are set by the test."""

    filter: ClassVar[str]
    priced: ClassVar[type]
    reservations = Bundle("reservations")

    @initialize(
        limits=st.lists(st.integers(0, 90), min_size=PROJECTS, max_size=PROJECTS),
        common=st.lists(st.integers(0, 150), min_size=2, max_size=2),
        deltas=st.lists(st.integers(1, 40), min_size=2, max_size=2),
    )
    def open(self, limits: list[int], common: list[int], deltas: list[int]) -> None:
        self.undone = Undone()
        self.undone.__enter__()
        self.world = World.opened(self.filter, self.priced, limits, common, deltas)

    @rule(
        target=reservations,
        project=st.integers(0, PROJECTS - 1),
        steps=st.integers(0, 12),
        delta_steps=st.sampled_from([0, 0, 0, 1]),
    )
    def reserve(self, project: int, steps: int, delta_steps: int):
        return self.world.reserve(project, steps, delta_steps) or multiple()

    @rule(held=reservations, how=st.sampled_from(WAYS))
    def settle(self, held: Held, how: str) -> None:
        self.world.settle(held, how)

    @rule(project=st.integers(0, PROJECTS - 1), group=st.integers(0, 1), number=st.integers(1, 4))
    def join(self, project: int, group: int, number: int) -> None:
        self.world.join(project, group, number)

    @rule(group=st.integers(0, 1), steps=st.integers(0, 150), delta_steps=st.integers(1, 40))
    def change_limit(self, group: int, steps: int, delta_steps: int) -> None:
        self.world.change_limit(group, steps, delta_steps)

    def teardown(self) -> None:
        if not hasattr(self, "undone"):
            return
        try:
            if hasattr(self, "world"):
                self.world.ends_well(audited=True)
        finally:
            self.undone.__exit__()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("filter_name", ["pure", "zcdp"])
def test_random_schedules_agree_with_a_plain_model(db, priced, filter_name):
    machine = type("Machine", (PopulationMachine,), {"filter": filter_name, "priced": priced})
    chosen = settings(
        max_examples=SCHEDULES,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    run_state_machine_as_test(machine, settings=chosen)


def take_step(world: World, draw: random.Random) -> None:
    """Draw one step and take it; where nothing is open to be settled, something is reserved."""
    kind = draw.choice(KINDS)
    opened = [held for held in world.model.held if held.state == "reserve"]
    if kind == "settle" and opened:
        world.settle(draw.choice(opened), draw.choice(WAYS))
    elif kind == "join":
        world.join(draw.randrange(PROJECTS), draw.randrange(2), draw.randint(1, 4))
    elif kind == "change_limit":
        world.change_limit(draw.randrange(2), draw.randint(0, 80), draw.randint(1, 30))
    else:
        world.reserve(draw.randrange(PROJECTS), draw.randint(0, 12), draw.choice([0, 0, 0, 1]))


def run_seeded(filter_name: str, priced: type, schedules: int) -> Counter[str]:
    """Run so many schedules and return how often what happened; what goes wrong names its opening and schedule."""
    happened: Counter[str] = Counter()
    for opening in range(schedules // OF_AN_OPENING):
        draw = random.Random(f"{SEED} {filter_name} {opening}")
        limits, common = ([draw.randint(0, most) for _ in range(n)] for n, most in ((PROJECTS, 40), (2, 80)))
        with Undone():
            world = World.opened(filter_name, priced, limits, common, [draw.randint(1, 30) for _ in range(2)])
            # Schedules begin with some that share people already, some that have a past, and some with neither.
            for project in range(PROJECTS):
                if draw.random() < 0.5:
                    world.join(project, draw.randrange(2), draw.randint(1, 4))
                if draw.random() < 0.3:
                    world.reserve(project, draw.randint(0, 12), 0)
            happened += world.outcomes
            for number in range(OF_AN_OPENING):
                there = World(filter_name, priced, copy.deepcopy(world.model))
                try:
                    with Undone():
                        for _ in range(SHORT_STEPS):
                            take_step(there, draw)
                        there.ends_well(audited=(opening + number) % AUDITED == 0)
                except BaseException as error:
                    error.add_note(f"seed {SEED}, {filter_name}, opening {opening}, schedule {number}")
                    raise
                happened += there.outcomes
    return happened


@pytest.mark.slow
@pytest.mark.parametrize("filter_name", ["pure", "zcdp"])
def test_ten_thousand_random_schedules_agree_with_a_plain_model(db, priced, filter_name):
    happened = run_seeded(filter_name, priced, SLOW_SCHEDULES)
    assert all(happened[each] > SLOW_SCHEDULES / 200 for each in OUTCOMES), happened


FAULTS = {
    "nobody repeats the projects": ("privacy_population_of", "account.id = asked", "account.id = -asked"),
    "a void of a population gives nothing back": ("privacy_admit_entry", "spent_sign := -1;", "spent_sign := 0;"),
    "the population's limit is never reached": (
        "privacy_admit_entry",
        "NEW.epsilon_spent_nano > account.epsilon_limit_nano",
        "(account.scope NOT LIKE 'population:%' AND NEW.epsilon_spent_nano > account.epsilon_limit_nano)",
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_planted_in_the_database_is_found(db, priced, fault):
    """Undone with the test's transaction."""
    function, right, wrong = FAULTS[fault]
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_functiondef(%s::regproc)", [function])
        (definition,) = cursor.fetchone()
        assert right in definition
        cursor.execute(definition.replace(right, wrong))
    with pytest.raises((AssertionError, IntegrityError, errors.PrivacyError)):
        run_seeded("pure", priced, 320)
