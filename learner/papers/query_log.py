"""A heavy-tailed log of a voice assistant with contributors: real or made-up texts, drawn frequencies and people."""

import csv
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from learner.papers.experiment import Data, Json

# The intents of CLINC150 about the speaker's own money: accounts and cards.
MONEY_WORDS = """account_blocked application_status apr balance bill_balance bill_due card_declined credit_limit
    credit_limit_change credit_score damaged_card expiration_date freeze_account improve_credit_score interest_rate
    international_fees min_payment new_card order_checks pay_bill pin_change redeem_rewards replacement_card_duration
    report_fraud report_lost_card rewards_balance routing spending_history transactions transfer"""
MONEY = frozenset(MONEY_WORDS.split())
VERBS = ("show", "tell me about", "change", "stop", "what about", "explain", "check", "where is")
OWN = ("my account", "my card", "my balance", "my bill", "my transfer", "my credit")
OTHER = ("the weather", "a song", "the lights", "a recipe", "the news", "a flight", "the traffic", "an alarm")
PLACES = ("paris", "london", "berlin", "rome", "madrid", "lisbon", "vienna", "oslo", "athens", "dublin", "tokyo")


def shown_on(settings: Json) -> str:
    real = "CLINC150, counts from a Zipf law, people from another; the class is its 30 intents about money"
    made = "a short grammar, counts from a Zipf law, people from another; the class is the speaker's own money"
    return f"The log is drawn: texts of {real if settings['texts'] == 'CLINC150' else made}."


@dataclass(frozen=True, slots=True)
class Texts:
    texts: tuple[str, ...]
    positive: NDArray[np.bool_]

    def part(self, places: NDArray[np.intp]) -> "Texts":
        return Texts(tuple(self.texts[place] for place in places), self.positive[places])


@dataclass(frozen=True, slots=True)
class QueryLog:
    """Line i is text `said[i]` of `pool`, by person `people[i]`."""

    pool: Texts
    test: Texts
    golden: Texts
    said: NDArray[np.int32]
    people: NDArray[np.int32]
    counts: NDArray[np.int64]
    habits: NDArray[np.intp]

    def batches(self, rows: int = 200_000) -> list[pa.RecordBatch]:
        texts, names = pa.array(self.pool.texts), pa.array([f"p{person}" for person in range(self.people.max() + 1)])
        return [
            pa.RecordBatch.from_arrays(
                [
                    texts.take(pa.array(self.said[start : start + rows])),
                    names.take(pa.array(self.people[start : start + rows])),
                ],
                names=["text", "contributor"],
            )
            for start in range(0, len(self.said), rows)
        ]


LogOf = Callable[[Json, Data, int], QueryLog]


def clinc_texts(data: Data) -> Texts:
    with data.path("clinc150_full.csv").open(newline="", encoding="utf-8") as file:
        found = {row["text"]: row["label"] in MONEY for row in csv.DictReader(file) if row["label"] != "oos"}
    return Texts(tuple(found), np.array(list(found.values())))


def made_texts() -> Texts:
    found = {
        f"{verb} {thing} in {place}": thing in OWN for place in PLACES for verb in VERBS for thing in (*OWN, *OTHER)
    }
    return Texts(tuple(found), np.array(list(found.values())))


def draw_query_log(texts: Texts, settings: Json, rng: np.random.Generator) -> QueryLog:
    order = rng.permutation(len(texts.texts))
    held = round(settings["test_share"] * len(order))
    test, golden = texts.part(order[settings["golden"] : held]), texts.part(order[: settings["golden"]])
    pool = texts.part(order[held:])
    counts = np.minimum(rng.zipf(settings["text_exponent"], size=len(pool.texts)), settings["largest_count"])
    said = np.repeat(np.arange(len(counts)), counts)
    talk = np.arange(1, settings["people"] + 1) ** -settings["people_exponent"]
    people = rng.choice(settings["people"], size=len(said), p=talk / talk.sum())
    habits = rng.choice(np.flatnonzero(counts == 1), size=settings["habits"], replace=False)
    often = rng.integers(29, 100, size=len(habits))
    owners = settings["people"] + np.arange(len(habits))
    people[np.searchsorted(said, habits)] = owners
    said, people = np.concatenate([said, np.repeat(habits, often)]), np.concatenate([people, np.repeat(owners, often)])
    counts[habits] += often
    mixed = rng.permutation(len(said))
    return QueryLog(
        pool,
        test,
        golden,
        said[mixed].astype(np.int32),
        people[mixed].astype(np.int32),
        counts.astype(np.int64),
        habits,
    )
