"""Statements and reservations of unbounded loss that were once taken: each is refused by the rule that it breaks."""

from dataclasses import replace

import pytest

from privacy.accounting.events import (
    ComposedGateWindowEvent,
    Event,
    GateWindowEvent,
    GaussianEvent,
    GradientStepsEvent,
    KAnonymityGateEvent,
    MinibatchSgdEvent,
    RandomizedAnswersEvent,
    RunningSumsEvent,
    SecretBlockEvent,
    SecretSampleEvent,
    SecretSeriesEvent,
    SumsEvent,
    ThresholdGateEvent,
)
from tests.forging import History, Step, said_by_auditor, said_by_database, said_by_service

pytestmark = pytest.mark.django_db

TRAINING = MinibatchSgdEvent(1.0, 3)
SERIES = SecretSeriesEvent((0.1, 0.2), (1.0, 1.0), (0.0, 0.0))
OPENED = SecretBlockEvent(SERIES, TRAINING, 1, (0, 0))
SAMPLE = SecretSampleEvent(TRAINING, 0.1)
AGAIN = SecretSampleEvent(TRAINING, 0.1, 1.0)
WINDOW = GateWindowEvent.next_of(None, ThresholdGateEvent(1.0, 1e-6), window=3)
COMPOSED = ComposedGateWindowEvent(KAnonymityGateEvent(20, 0.3, 0.5), 3, 1)
SUMS = SumsEvent(5, 3, 1.0, 0.0, 9.0)
ANSWERS = RandomizedAnswersEvent(2.0, 5)

STEPS = GradientStepsEvent(4, 3, 3, 1.0, 0.3, 5.0, 9.0)
RUNNING = RunningSumsEvent(SUMS, 4, (), ())
NO_EPSILON = "has no finite epsilon, and the pure filter sums epsilons"
NO_RHO = "has no finite rho, and the zcdp filter sums rhos"
UNIT = "an account has one unit of privacy"
FORKED = "another release has paid for this step of the series"
NAMELESS = "continues nothing and names no entry before it"


def blocks(*attempts: tuple[int, int], block: int = 1) -> list[Event]:
    return [SecretBlockEvent(SERIES, TRAINING, block, tried) for tried in attempts]


def chain(*events: Event) -> list[Step]:
    return [Step(event, place - 1 if event.needs_parent else None) for place, event in enumerate(events)]


def runs(n: int, opened: GateWindowEvent = WINDOW) -> list[Event]:
    made = [opened]
    for _run in range(n - 1):
        made.append(opened.next_of(made[-1], opened.inner, window=3, epoch=1))
    return made


WITHOUT_PRICE = {"epsilon_nano": None, "rho_nano": 1}
FORGERIES = {
    "fifty Gaussian releases without an epsilon on a pure account": (
        History([Step(GaussianEvent(1.0, 0.1))] * 50),
        NO_EPSILON,
        "privacy_entry_finite_cost",
    ),
    "a record's sums on a contributor's account": (
        History([Step(SUMS)], unit="contributor", filter="zcdp"),
        UNIT,
        "privacy_entry_unit",
    ),
    "a rho that is infinite on an account of rhos": (
        History([Step(OPENED)], filter="zcdp"),
        NO_RHO,
        "privacy_entry_finite_cost",
    ),
    "seven releases of a secret series with attempts that never were": (
        History(chain(OPENED, *blocks(*[(9, 9 + n) for n in range(6)], block=2))),
        "attempts must count every release of the series before",
        "privacy_entry_series_counted",
    ),
    "three openings of one series": (History([Step(OPENED)] * 3), FORKED, "privacy_entry_series_opened_once"),
    "seven forks of a secret sample": (
        History([Step(SAMPLE), *[Step(AGAIN, 0)] * 7]),
        FORKED,
        "privacy_entry_series_continued_once",
    ),
    "a secret sample that forgets what its coins have told": (
        History(chain(SAMPLE, replace(AGAIN, released_before=0.25))),
        "released_before must be >= 1.0",
        "privacy_entry_series_counted",
    ),
    "a gate window run ten times and paid twice": (
        History([Step(WINDOW), *[Step(event, 0) for event in runs(2)[1:] * 9]]),
        FORKED,
        "privacy_entry_series_continued_once",
    ),
    "a composed window run ten times and paid twice": (
        History([Step(COMPOSED), *[Step(event, 0) for event in runs(2, COMPOSED)[1:] * 9]]),
        FORKED,
        "privacy_entry_series_continued_once",
    ),
    "a composed window opened twice": (History([Step(COMPOSED)] * 2), FORKED, "privacy_entry_series_opened_once"),
    "a gate window with runs that never were": (
        History(chain(*runs(2), replace(runs(3)[2], repeats=(1, 1)))),
        "a further run must count every run of the series before",
        "privacy_entry_series_counted",
    ),
}
# What the service cannot be asked for, since it sets prices and parents itself.
WRITTEN = (
    {
        f"one unit for {event.kind}": (
            History([Step(event).priced(**cheap)], unit=getattr(event, "unit", "record"), filter=account_filter),
            f"{field}: ",
            "privacy_entry_price",
        )
        for event, account_filter, field, cheap in (
            (TRAINING, "pure", "epsilon_nano", {"epsilon_nano": 1}),
            (OPENED, "pure", "epsilon_nano", {"epsilon_nano": 1}),
            (SAMPLE, "pure", "epsilon_nano", {"epsilon_nano": 1}),
            (WINDOW, "pure", "delta_atto", {"delta_atto": 1}),
            (ANSWERS, "pure", "epsilon_nano", {"epsilon_nano": 1}),
            (SUMS, "zcdp", "rho_nano", {"rho_nano": 1}),
            (STEPS, "zcdp", "rho_nano", {"rho_nano": 1}),
            (RUNNING, "zcdp", "rho_nano", {"rho_nano": 1}),
            (GaussianEvent(1.0, 0.1), "zcdp", "epsilon_nano", {"epsilon_nano": 1}),
        )
    }
    | {
        f"{event.kind} continued at no price": (
            History(
                [Step(event), Step(event, 0).priced(epsilon_nano=0, delta_atto=0, rho_nano=0)],
                unit=getattr(event, "unit", "record"),
                filter=account_filter,
            ),
            NAMELESS,
            "privacy_entry_price",
        )
        for event, account_filter in ((ANSWERS, "pure"), (RUNNING, "zcdp"), (SUMS, "zcdp"))
    }
    | {
        "a continuation without a parent": (
            History([Step(SAMPLE), Step(AGAIN)]),
            "must name the entry it descends from",
            "privacy_entry_series",
        ),
        "a composed window that is continued as one of runs": (
            History(chain(COMPOSED, GateWindowEvent(COMPOSED.inner, 3, 2, 1))),
            "a further run must descend from one of the same gate over as many uploads",
            "privacy_entry_series_counted",
        ),
        "an opening that names another": (History([Step(SAMPLE), Step(SAMPLE, 0)]), NAMELESS, "privacy_entry_series"),
        "a mechanism that is not the event's": (
            History([Step(OPENED).priced(mechanism="training")]),
            "mechanism: training, must be secret_block",
            "privacy_entry_mechanism",
        ),
    }
)


@pytest.mark.parametrize(("history", "rule", "constraint"), FORGERIES.values(), ids=FORGERIES)
def test_all_three_refuse(history, rule, constraint):
    assert rule in said_by_auditor(history)
    assert rule in said_by_service(history)
    assert said_by_database(history) == constraint


@pytest.mark.parametrize(("history", "rule", "constraint"), WRITTEN.values(), ids=WRITTEN)
def test_what_is_written_past_the_service_is_refused(history, rule, constraint):
    assert rule in said_by_auditor(history)
    assert said_by_database(history) == constraint


@pytest.mark.parametrize(
    "history",
    [
        History(chain(OPENED, *blocks((1, 0), (1, 1), block=2))),
        History(chain(SAMPLE, AGAIN, replace(AGAIN, released_before=2.0))),
        History(chain(*runs(4))),
        History([Step(SUMS), Step(STEPS), Step(RUNNING)], filter="zcdp"),
        History([Step(ANSWERS)], unit="answer"),
    ],
    ids=["blocks", "samples", "window", "sums", "answers"],
)
def test_honest_histories_pass_all_three(history):
    assert said_by_auditor(history) == ""
    assert said_by_service(history) == ""
    assert said_by_database(history) == ""
