"""Promise of the gate: the table of epsilon and delta, people against records."""

import math
from typing import Any

import numpy as np

from learner.papers.experiment import Claim, Data, Experiment, Json, PaperTable
from learner.papers.query_log import LogOf, QueryLog
from privacy.accounting.gate import gate_delta, gate_delta_without_cap
from privacy.gate.kanonymity import KAnonymityGate

LARGEST_EPSILON = 40.0


def epsilon_at(k: int, rate: float, delta: float) -> float:
    """Return the smallest epsilon, up to three decimals, at which the gate's exact delta is at most `delta`."""
    low, high = 1e-4, LARGEST_EPSILON
    if float(gate_delta(k, rate, high)) > delta:
        return math.inf
    while high - low > 5e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if float(gate_delta(k, rate, middle)) <= delta else (middle, high)
    return math.ceil(high * 1_000) / 1_000


def full_count_delta(rate: float, k: int, runs: int, rng: np.random.Generator) -> float:
    """Return how often the source's own order, sample distinct texts, then count all, shows a text of k records.

    Without one of the records it never does, so this share estimates a lower bound on delta at every epsilon.
    """
    kept = rng.random(runs) < rate
    counts = np.full(runs, k)
    return float((kept & (counts >= k)).mean())


class EpsilonDelta(Experiment):
    name = "epsilon_delta"
    title = "The (epsilon, delta) table"

    def __init__(self, *, small: bool) -> None:
        self.settings: Json = {
            "epsilons": [0.25, 0.5, 0.75, 1.0],
            "rates": [0.1, 0.9] if small else [0.1, 0.3, 0.6, 0.9],
            "ks": [20, 100] if small else [20, 100, 200, 500],
            "planted_runs": 20_000,
        }
        self.seeds = (71,)

    def run(self, seed: int, data: Data) -> Json:
        rng = np.random.default_rng(seed)
        rates, ks, epsilons = (self.settings[name] for name in ("rates", "ks", "epsilons"))
        table = {
            method: [
                [
                    [
                        float(gate_delta(k, rate, epsilon, method)) if priced(method, rate, epsilon) else None
                        for epsilon in epsilons
                    ]
                    for k in ks
                ]
                for rate in rates
            ]
            for method in ("li2012", "exact")
        }
        planted = [full_count_delta(rate, ks[0], self.settings["planted_runs"], rng) for rate in rates]
        return {"delta": table, "planted": planted}

    def cells(self, result: Json) -> list[tuple[float, int, float, float | None, float]]:
        """Return rate, k, epsilon, published delta where there is one, exact delta."""
        delta = result["delta"]
        return [
            (rate, k, epsilon, delta["li2012"][i][j][m], delta["exact"][i][j][m])
            for i, rate in enumerate(self.settings["rates"])
            for j, k in enumerate(self.settings["ks"])
            for m, epsilon in enumerate(self.settings["epsilons"])
        ]

    def claims(self, result: Json) -> list[Claim]:
        cells = self.cells(result)
        exact = np.array(result["delta"]["exact"])
        both = [(published, ours) for *_, published, ours in cells if published is not None]
        unpriced = [ours for *_, published, ours in cells if published is None]
        saved = [ours for ours in unpriced if ours <= 1e-3]
        planted = result["planted"]
        return [
            Claim(
                "Strong privacy needs a larger k and a smaller beta (table 1).",
                f"delta at epsilon 1 from {exact[0, -1, -1]:.1e} to {exact[-1, 0, -1]:.1e}",
                bool((np.diff(exact, axis=1) <= 0).all() and (np.diff(exact, axis=0) >= 0).all()),
                "exact delta never rises with k and never falls with beta, at every epsilon",
            ),
            Claim(
                "A low k keeps privacy only at the largest epsilon and delta of the table.",
                f"delta at beta {self.settings['rates'][0]:g}, k {self.settings['ks'][0]}: "
                + ", ".join(f"{value:.1e}" for value in exact[0, 0]),
                bool(exact[:, 0, 0].min() > 1e-6),
                "with the smallest k no rate has an exact delta of at most 1e-6 at the smallest epsilon",
            ),
            Claim(
                "The published accounting is safe.",
                f"published over exact delta: {min(a / max(b, 1e-30) for a, b in both):.2f} to "
                f"{max(a / max(b, 1e-30) for a, b in both):.3g}",
                all(published >= ours * (1 - 1e-9) for published, ours in both),
                "published delta at least the exact one wherever it is defined, epsilon at least -ln(1 - beta)",
            ),
            Claim(
                "The exact accounting prices gates that the published one cannot (ours).",
                f"{len(saved)} of {len(unpriced)} unpriced cells have an exact delta of at most 1e-3",
                bool(saved),
                "at least one cell without a published price has exact delta at most 1e-3",
            ),
            Claim(
                "The source's own order, sampling distinct queries and counting all, keeps these deltas.",
                "a text of exactly k records shows in "
                + ", ".join(f"{share:.3f}" for share in planted)
                + f" of the runs for beta {self.settings['rates']}, and never without one of them",
                all(share <= worst for share, worst in zip(planted, exact[:, 0, -1].tolist(), strict=True)),
                "the share, a lower bound on delta at every epsilon, is at most the table's delta at epsilon 1",
            ),
        ]

    def tables(self, result: Json) -> list[PaperTable]:
        names = {"li2012": "published tail bound", "exact": "exact"}
        header = ["beta", "k", *(f"epsilon {epsilon:g}" for epsilon in self.settings["epsilons"])]
        return [
            PaperTable(
                f"Delta, {names[method]}",
                header,
                [
                    [f"{rate:g}", str(k), *("none" if value is None else _tiny(value) for value in row)]
                    for rate, block in zip(self.settings["rates"], result["delta"][method], strict=True)
                    for k, row in zip(self.settings["ks"], block, strict=True)
                ],
            )
            for method in ("li2012", "exact")
        ]

    def costs(self, result: Json) -> list[str]:
        return [
            "Sampling records instead of distinct texts is all the sound version changes: a text needs about k / beta "
            "records to pass instead of k."
        ]


def priced(method: str, rate: float, epsilon: float) -> bool:
    return method == "exact" or epsilon >= -math.log1p(-rate)


def _tiny(value: float) -> str:
    return "< 1e-30" if value <= 1e-30 else f"{value:.1e}"


class ContributorGate(Experiment):
    name = "contributors"
    title = "The gate on contributors"

    def __init__(self, log_of: LogOf, *, small: bool) -> None:
        self.log_of, self.needs_data = log_of, not small
        self.settings: Json = {
            "k": 10 if small else 20,
            "rate": 0.3,
            "caps": [1, 3] if small else [1, 3, 10, 30, 100],
            "epsilon": 0.5,
            "same_person": [1, 2, 5],
        }
        self.seeds = (91,)

    def run(self, seed: int, data: Data) -> Json:
        log, k, rate = self.log_of(self.settings, data, seed), self.settings["k"], self.settings["rate"]
        alone = {log.pool.texts[place] for place in log.habits}
        key = np.random.default_rng([seed, 2]).bytes(32)
        rows = [self.row(log, alone, KAnonymityGate(k, rate), None, key)]
        for cap in self.settings["caps"]:
            gate = KAnonymityGate(k, rate, unit="contributor", texts_per_contributor=cap)
            rows.append(self.row(log, alone, gate, cap, key))
        without = [
            gate_delta_without_cap(k, rate, self.settings["epsilon"], records)
            for records in self.settings["same_person"]
        ]
        per_person = np.unique(log.people.astype(np.int64) * len(log.counts) + log.said) // len(log.counts)
        return {
            "rows": rows,
            "without_cap": without,
            "delta": float(gate_delta(k, rate, self.settings["epsilon"])),
            "habits": len(alone),
            "most_texts": int(np.bincount(per_person).max()),
        }

    def row(self, log: QueryLog, alone: set[str], gate: KAnonymityGate, cap: int | None, key: bytes) -> Json:
        shown: list[Any] = gate.release(log.batches(), key=key)["text"].to_pylist()
        return {"cap": cap, "passed": len(shown), "of_one_person": len(alone.intersection(shown))}

    def claims(self, result: Json) -> list[Claim]:
        record, *capped = result["rows"]
        growth = result["without_cap"][-1] / result["without_cap"][0]
        most = max(row["passed"] for row in capped)
        return [
            Claim(
                "k-anonymity of queries lets a user hide in a crowd of k users.",
                f"{record['of_one_person']} of {result['habits']} texts that one person alone says come out "
                f"of the gate on records; {max(row['of_one_person'] for row in capped)} of that on people",
                record["of_one_person"] == 0,
                "no text of a single person comes out of the gate that counts records",
            ),
            Claim(
                "The gate on people shows no text of one person (ours).",
                f"{[row['of_one_person'] for row in capped]} for caps {self.settings['caps']}",
                all(row["of_one_person"] == 0 for row in capped),
                "none at any cap",
            ),
            Claim(
                "Several records of one person under a text break the stated delta.",
                f"delta at epsilon {self.settings['epsilon']:g}: "
                + ", ".join(f"{value:.1e}" for value in result["without_cap"])
                + f" for {self.settings['same_person']} records of one person",
                growth > 10,
                "delta grows by more than ten",
            ),
            Claim(
                "Protecting people costs few texts.",
                f"{record['passed']} texts pass on records, at most {most} on people",
                most >= 0.9 * record["passed"],
                "at least 90 % of the texts still pass at the best cap",
            ),
        ]

    def tables(self, result: Json) -> list[PaperTable]:
        epsilon = self.settings["epsilon"]
        rows = []
        for row in result["rows"]:
            times = row["cap"] or 1
            unit = "record" if row["cap"] is None else f"person, {row['cap']} texts"
            price = (f"{times * epsilon:g}", f"{times * result['delta']:.1e}")
            rows.append([unit, str(row["passed"]), str(row["of_one_person"]), *price])
        header = ("hides a", "texts that pass", "of one person alone", "epsilon", "delta")
        return [PaperTable(f"k = {self.settings['k']}, beta = {self.settings['rate']:g}", header, rows)]

    def costs(self, result: Json) -> list[str]:
        return [
            f"A person who may keep m texts pays m times epsilon and delta; the busiest said {result['most_texts']:,} "
            "different texts. A cap of one costs as much as a record and passes fewer texts."
        ]
