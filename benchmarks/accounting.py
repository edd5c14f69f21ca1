"""Price the k-anonymity gate and a ledger of events, against brute force and a second accountant.

Run: python benchmarks/accounting.py [--json]

Limits: the grid of the source (k 20 to 500, nine sampling rates, four losses) in a second; the smallest k in 100 ms
for the losses and deltas a planner offers; a thousand stored events read back and priced again in a second. The brute
force is the definition: both hockey-stick divergences at every number of records up to three times the peak.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from scipy.stats import binom

from privacy.accounting.composition import gaussian_epsilon, gdp_total, pld_epsilon
from privacy.accounting.events import GaussianEvent, KAnonymityGateEvent, TopCEvent, event_from_json
from privacy.accounting.gate import gate_delta, gate_minimum_k

KS = np.arange(20, 501)
RATES = np.linspace(0.1, 0.9, 9)
EPSILONS = np.array([0.25, 0.5, 0.75, 1.0])
BRUTE_CELLS = 12


@dataclass(frozen=True, slots=True)
class Line:
    """One claim: ours, the peer's, the limit, all in the unit its name ends with."""

    name: str
    ours: float
    peer: float
    limit: float

    @property
    def kept(self) -> bool:
        """Whether the limit held."""
        return self.ours <= self.limit


def best_of(run: Callable[[], object], times: int = 3) -> float:
    """Return the shortest of a few runs, in seconds."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def brute_delta(k: int, rate: float, epsilon: float) -> float:
    """Return the gate's delta by the definition."""
    gamma = 1 - (1 - rate) * math.exp(-epsilon)
    grow, worst = math.exp(epsilon), 0.0
    for n in range(1, math.ceil(3 * k / gamma) + 50):
        counts = np.arange(k, n + 1)
        more, fewer = binom.pmf(counts, n, rate), binom.pmf(counts, n - 1, rate)
        hidden_more, hidden_fewer = binom.cdf(k - 1, n, rate), binom.cdf(k - 1, n - 1, rate)
        forward = np.maximum(more - grow * fewer, 0).sum() + max(0.0, hidden_more - grow * hidden_fewer)
        backward = np.maximum(fewer - grow * more, 0).sum() + max(0.0, hidden_fewer - grow * hidden_more)
        worst = max(worst, forward, backward)
    return float(worst)


def grid_line() -> Line:
    """Time the whole grid, and the brute force on a few of its cells."""
    ours = best_of(lambda: gate_delta(KS[:, None, None], RATES[:, None], EPSILONS))
    rng = np.random.default_rng(7)
    cells = [
        (int(rng.choice(KS[:100])), float(rng.choice(RATES)), float(rng.choice(EPSILONS))) for _ in range(BRUTE_CELLS)
    ]
    start = time.perf_counter()
    brute = [brute_delta(*cell) for cell in cells]
    peer = (time.perf_counter() - start) / BRUTE_CELLS * KS.size * RATES.size * EPSILONS.size
    for cell, expected in zip(cells, brute, strict=True):
        if expected > 1e-15 and abs(gate_delta(*cell) - expected) > 1e-9 * expected:
            raise SystemExit(f"gate_delta{cell} differs from the definition")
    return Line("gate grid, 17,316 cells (s; peer: definition, extrapolated)", ours, peer, 1.0)


def minimum_k_line() -> Line:
    """Time the slowest smallest k over what a planner offers, and the same by trying one k after the other."""
    offers = [
        (epsilon, 10.0**-digits, float(rate)) for epsilon in (0.1, *EPSILONS) for digits in (6, 9) for rate in RATES
    ]
    ours = max(best_of(lambda offer=offer: gate_minimum_k(*offer)) for offer in offers)

    def one_by_one() -> int:
        k = 1
        while gate_delta(k, 0.3, 0.25) > 1e-9:
            k += 1
        return k

    return Line(
        "smallest k, slowest of 90 offers (ms; peer: trying each k)", ours * 1e3, best_of(one_by_one, 1) * 1e3, 100
    )


def audit_line() -> Line:
    """Time what an auditor does with a thousand entries; the peer prices live objects without reading JSON."""
    events = [KAnonymityGateEvent(20 + i % 50, 0.3, 0.5) if i % 2 else TopCEvent(10_000, 50, 0.25) for i in range(1000)]
    stored = [json.dumps(event.to_json()) for event in events]
    ours = best_of(lambda: [event_from_json(json.loads(line)).cost() for line in stored])
    return Line(
        "1,000 events read and priced (s; peer: priced only)", ours, best_of(lambda: [e.cost() for e in events]), 1.0
    )


def composition_line() -> Line:
    """Compare the numerical composition of 20 Gaussian releases with their closed form."""
    sigmas = [3.0 + i / 4 for i in range(20)]
    exact = gaussian_epsilon(gdp_total(1 / sigma for sigma in sigmas), 1e-6)
    shown = pld_epsilon([GaussianEvent(1.0, sigma) for sigma in sigmas], 1e-6)
    return Line("epsilon of 20 Gaussian releases, PLD (peer: closed form)", shown, exact, exact * 1.01)


def main() -> int:
    """Print one line per claim; the exit code says whether all limits held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    lines = [grid_line(), minimum_k_line(), audit_line(), composition_line()]
    if wanted.json:
        print(json.dumps([asdict(line) | {"kept": line.kept} for line in lines]))
    else:
        for line in lines:
            verdict = "ok" if line.kept else "MISSED"
            print(f"{line.name:62s} ours {line.ours:10.4g}  peer {line.peer:10.4g}  limit {line.limit:8.4g}  {verdict}")
    return 0 if all(line.kept for line in lines) else 1


if __name__ == "__main__":
    raise SystemExit(main())
