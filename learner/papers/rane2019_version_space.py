"""Version space of Rane and Brito 2019: its arc on the circle, and the labels of CAL and its private form."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from learner.papers.experiment import (
    Claim,
    Data,
    Experiment,
    Json,
    Panel,
    PaperFigure,
    PaperSeries,
    PaperTable,
    banded_cells,
    cell,
    shown,
)
from learner.papers.plane_learners import GAPS, POINTS, coin, constellation, draw_starts, learn_until_separated
from privacy.accounting.screens import screen_epsilon
from privacy.arrays import Array

EXAMPLE_SEED = 31
STEPS_DRAWN = 8


class ShrinkingArc(Experiment):
    name = "shrinking_arc"
    title = "The version space on the circle"
    ways = {"closest": 1.0, "epsilon_p 0.1": coin(0.1), "random": 1.0}

    def __init__(self, *, small: bool) -> None:
        self.settings: Json = POINTS | {"gap": GAPS["narrow"], "runs_a_seed": 200 if small else 5_000, "steps": 12}
        self.seeds = (21,)
        self.runs = self.settings["runs_a_seed"]

    def run(self, seed: int, data: Data) -> Json:
        points = constellation(self.settings, self.settings["gap"])
        starts = draw_starts(points.signs, self.settings["runs_a_seed"], np.random.default_rng(seed))
        example = draw_starts(points.signs, 1, np.random.default_rng(EXAMPLE_SEED))
        part: Json = {"direction": math.atan2(points.direction[1], points.direction[0])}
        for place, (way, probability) in enumerate(self.ways.items()):
            widths, arcs = [], []
            for begin, wanted in ((starts, self.settings["steps"]), (example, STEPS_DRAWN)):
                learned = learn_until_separated(
                    points,
                    begin,
                    probability=probability,
                    order="random" if way == "random" else "ranked",
                    cost=self.settings["cost"],
                    most_queries=wanted,
                    rng=np.random.default_rng([seed, place]),
                )
                # A run that has finished asks no more, and its version space stays as it is.
                labelled = np.where(learned.labelled < 0, learned.labelled[:, :1], learned.labelled)
                low, high = arc_bounds(points.turns, labelled)
                widths.append((high - low)[:, 1:])
                arcs.append((low[0, 1:], high[0, 1:]))
            part[way] = {
                "width": [cell(np.degrees(column)) for column in widths[0].T],
                "arcs": [[float(low), float(high)] for low, high in zip(*arcs[1], strict=True)],
                "weights": learned.weights[0].tolist(),
            }
        return part

    def claims(self, result: Json) -> list[Claim]:
        widths = {way: [at["value"] for at in result[way]["width"]] for way in self.ways}
        step = 5
        ratio = widths["epsilon_p 0.1"][step] / widths["closest"][step]
        return [
            Claim(
                "Labels of informative records shrink the version space to a tiny arc (figure 3a).",
                f"from {widths['closest'][0]:.0f} to {widths['closest'][step]:.2f} degrees in {step} labels, closest "
                f"first; {widths['random'][step]:.2f} in random order",
                widths["closest"][step] < widths["random"][step] / 2,
                f"after {step} labels the mean arc is less than half of that in random order",
            ),
            Claim(
                "Randomised selection shrinks the version space about as fast.",
                f"{widths['epsilon_p 0.1'][step]:.2f} degrees at epsilon_p .1, {ratio:.2f} times that of the closest",
                ratio <= 1.25,
                f"at most 1.25 times the arc after {step} labels",
            ),
        ]

    def charts(self, result: Json) -> list[PaperFigure]:
        panels = [self._circle(result, way) for way in ("closest", "epsilon_p 0.1")]
        curves = [banded_cells(way, list(range(len(result[way]["width"]))), result[way]["width"]) for way in self.ways]
        panels.append(Panel(curves, "labels asked for", "degrees", "mean width, runs that finish stay", y_log=True))
        return [
            PaperFigure(
                "version_space",
                "The version space shrinks",
                "Left and middle: the unit circle, one run; each arc outside it is the version space after one more "
                "label, the first innermost; the mark is the final machine. Right: mean width of the arc.",
                panels,
            )
        ]

    def _circle(self, result: Json, way: str) -> Panel:
        turn = np.linspace(0, 2 * np.pi, 181)
        series = [PaperSeries("unit circle", np.cos(turn).round(4).tolist(), np.sin(turn).round(4).tolist())]
        for step, (low, high) in enumerate(result[way]["arcs"]):
            angles = result["direction"] + np.linspace(low, high, 60)
            radius = 1.08 + 0.06 * step
            x, y = (radius * np.cos(angles)).round(4).tolist(), (radius * np.sin(angles)).round(4).tolist()
            series.append(PaperSeries(f"{step} labels", x, y))
        weights = np.array(result[way]["weights"])
        weights = weights / np.linalg.norm(weights)
        series.append(PaperSeries("machine", [float(weights[0])], [float(weights[1])], style="points"))
        return Panel(series, "first weight", "second weight", f"{way}, one run", equal=True)


class SettledVersionSpace(Experiment):
    name = "settled"
    title = "CAL and Bernoulli-p with an exact version space"

    def __init__(self, *, small: bool) -> None:
        self.settings: Json = POINTS | {
            "gap": GAPS["middle"],
            "probabilities": [0.5, 0.75, 1.0]
            if small
            else [0.5, coin(0.1), 0.6, 0.7, coin(1), 0.8, 0.9, 0.95, 0.99, 1],
            "runs_a_seed": 200 if small else 5_000,
        }
        self.seeds = (41,)
        self.runs = self.settings["runs_a_seed"]

    def run(self, seed: int, data: Data) -> Json:
        points = constellation(self.settings, self.settings["gap"])
        starts = draw_starts(points.signs, self.settings["runs_a_seed"], np.random.default_rng(seed))
        rows = []
        for place, probability in enumerate([*self.settings["probabilities"], None]):
            settled = learn_until_settled(
                points.turns,
                starts,
                probability=1.0 if probability is None else probability,
                screened=probability is not None,
                rng=np.random.default_rng([seed, place]),
            )
            rows.append(
                {
                    "labels": cell(settled.labels),
                    "informative": cell(settled.informative),
                    "widest": cell(settled.widest),
                }
            )
        return {"screened": rows[:-1], "random": rows[-1]}

    def claims(self, result: Json) -> list[Claim]:
        probabilities = self.settings["probabilities"]
        cal = result["screened"][-1]["labels"]["value"]
        times = [row["labels"]["value"] / cal * p for row, p in zip(result["screened"], probabilities, strict=True)]
        informative = [row["informative"]["value"] for row in result["screened"]]
        half, random = result["screened"][0]["labels"], result["random"]["labels"]
        return [
            Claim(
                "CAL needs far fewer labels than random order.",
                f"{cal:.1f} against {shown(random, 1)}",
                cal < random["value"] / 2,
                "less than half of the labels",
            ),
            Claim(
                "Proposition 2: the private form needs O(1/p) times the labels, a moderate increase.",
                f"labels times p over those of CAL: {', '.join(f'{value:.1f}' for value in times)} for p from "
                f"{probabilities[0]:g} to 1",
                max(times) <= 2,
                "labels are at most 2/p times those of CAL at every p",
            ),
            Claim(
                "The number of informative labels does not depend on p (what the proof counts).",
                f"{min(informative):.2f} to {max(informative):.2f}",
                max(informative) <= 1.05 * min(informative),
                "largest and smallest mean within 5 %",
            ),
            Claim(
                "Even p = .5 is worth more than random order.",
                f"{shown(half, 1)} against {shown(random, 1)} labels",
                half["value"] < 0.9 * random["value"],
                "at least 10 % fewer labels",
            ),
        ]

    def tables(self, result: Json) -> list[PaperTable]:
        rows = [
            [f"{p:.3f}", _claimed(p), shown(row["labels"], 2), shown(row["informative"], 2), shown(row["widest"], 2)]
            for p, row in zip(self.settings["probabilities"], result["screened"], strict=True)
        ]
        rows.append(["random order", "0", shown(result["random"]["labels"], 2), "", ""])
        header = ("p", "epsilon_p as claimed", "labels", "of them informative", "most examinations of a record")
        return [PaperTable("Labels until the version space decides every record", header, rows)]

    def charts(self, result: Json) -> list[PaperFigure]:
        probabilities = self.settings["probabilities"]
        cal = result["screened"][-1]["labels"]["value"]
        series = [
            PaperSeries("asked for", probabilities, [row["labels"]["value"] for row in result["screened"]]),
            PaperSeries("informative", probabilities, [row["informative"]["value"] for row in result["screened"]]),
            PaperSeries("CAL / p, as claimed", probabilities, [cal / p for p in probabilities], style="dashed"),
            PaperSeries("random order", [probabilities[0], 1.0], [result["random"]["labels"]["value"]] * 2),
        ]
        return [
            PaperFigure(
                "settled",
                "Label complexity against p with an exact version space",
                "The labels asked for grow far faster than 1/p as p falls, since most records are not informative and "
                "each is asked about with probability 1 - p; the informative ones stay as many.",
                [Panel(series, "p", "labels until every record is decided")],
            )
        ]

    def costs(self, result: Json) -> list[str]:
        p = coin(1.0)
        place = min(
            range(len(self.settings["probabilities"])), key=lambda i: abs(self.settings["probabilities"][i] - p)
        )
        often = result["screened"][place]["widest"]["value"]
        rising = all(b["labels"]["value"] < a["labels"]["value"] for a, b in pairwise(result["screened"]))
        return [
            "Dropping a record shows that it did not cross the version space, which no epsilon covers; keeping it "
            f"would cost {screen_epsilon(p, 1 - p):.2f} each time at epsilon_p 1, at most {often:.1f} times.",
            "The version space of the clean model depends on all records; a project may screen by one built from "
            "released models only, which costs the same and knows less.",
            f"Labels {'fall' if rising else 'do not fall'} strictly as p rises.",
        ]


def _claimed(probability: float) -> str:
    return "unbounded" if probability == 1 else f"{math.log(probability / (1 - probability)):.2f}"


MOST_PASSES = 10_000


@dataclass(frozen=True, slots=True)
class Settled:
    informative: NDArray[np.intp]
    others: NDArray[np.intp]
    widest: NDArray[np.intp]

    @property
    def labels(self) -> NDArray[np.intp]:
        return self.informative + self.others


def arc_bounds(turns: Array, labelled: NDArray[np.intp]) -> tuple[Array, Array]:
    """Return the ends of the version space after each label, as angles from the labelling hypothesis."""
    known = turns[labelled]
    return np.maximum.accumulate(known, axis=-1) - np.pi, np.minimum.accumulate(known, axis=-1)


def learn_until_settled(
    turns: Array, starts: NDArray[np.intp], *, probability: float, screened: bool = True, rng: np.random.Generator
) -> Settled:
    r"""Go round a randomly ordered pool until the version space crosses no line of it.

    A record whose line crosses the version space is asked about with probability p and goes back to the pool
    otherwise; another is asked about with probability 1 - p and is dropped otherwise. With p = 1 this is CAL.
    Each answer shrinks the version space before the next record is examined.

    UNSOUND for p < 1, for reproduction only: the version space is a clean one, and dropping a record tells on it
    with certainty.

    References
    ----------
    .. [1] Rane, Brito 2019, sections III.B and IV.B.
    """
    n_runs, n_points = len(starts), len(turns)
    order = np.argsort(rng.random((n_runs, n_points)), axis=1)
    pool = np.ones((n_runs, n_points), dtype=np.bool_)
    np.put_along_axis(pool, starts, np.False_, axis=1)
    pool = np.take_along_axis(pool, order, axis=1)
    least, most = turns[starts].min(axis=1), turns[starts].max(axis=1)
    informative, others = np.zeros(n_runs, dtype=np.intp), np.zeros(n_runs, dtype=np.intp)
    examined = np.zeros((n_runs, n_points), dtype=np.intp)
    # The lines that cross longest are those of the extreme points.
    goal_least, goal_most = turns.min(), turns.max()
    for _ in range(MOST_PASSES):
        for place in range(n_points):
            unsettled = (least > goal_least) | (most < goal_most)
            turn = turns[order[:, place]]
            crosses = (turn < least) | (turn > most)
            live = pool[:, place] & unsettled
            chance = np.where(crosses, probability, 1 - probability) if screened else 1.0
            asked = live & (rng.random(n_runs) < chance)
            examined[:, place] += live
            informative += asked & crosses
            others += asked & ~crosses
            pool[:, place] &= ~(asked | (live & ~crosses))
            least = np.where(asked, np.minimum(least, turn), least)
            most = np.where(asked, np.maximum(most, turn), most)
        if not ((least > goal_least) | (most < goal_most)).any():
            return Settled(informative, others, examined.max(axis=1))
    raise ArithmeticError(f"some runs did not settle within {MOST_PASSES} passes")
