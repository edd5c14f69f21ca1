"""Figure 1 of Feyisetan et al. 2019: the drawn log of real texts, and what every experiment on it has in common."""

import numpy as np

from learner.papers.crowd_learning import Crowd
from learner.papers.experiment import Claim, Data, Experiment, Json, Panel, PaperFigure, PaperSeries
from learner.papers.query_log import QueryLog, clinc_texts, draw_query_log, made_texts, shown_on

LOG: Json = {
    "text_exponent": 1.8,
    "largest_count": 50_000,
    "people": 100_000,
    "people_exponent": 0.8,
    "habits": 100,
    "test_share": 0.2,
    "golden": 50,
}
SMALL_LOG: Json = LOG | {"largest_count": 2_000, "people": 1_000, "habits": 10}
LEARNING: Json = {"features": 512, "regularization": 0.3, "right": 0.95, "right_spread": 0.03}


def simulated_log(settings: Json, data: Data, seed: int) -> QueryLog:
    texts = made_texts() if settings["texts"] == "made up" else clinc_texts(data)
    return draw_query_log(texts, settings, np.random.default_rng([seed, 1]))


def simulated_key(seed: int, *places: int) -> bytes:
    """Return a gate's key: a simulation's, so that results come again."""
    return np.random.default_rng([seed, 2, *places]).bytes(32)


class LogExperiment(Experiment):
    def __init__(self, *, small: bool) -> None:
        self.settings: Json = (SMALL_LOG | {"texts": "made up"}) if small else (LOG | {"texts": "CLINC150"})
        self.settings |= LEARNING
        self.needs_data = not small

    def crowd(self, data: Data, seed: int) -> Crowd:
        return Crowd(simulated_log(self.settings, data, seed), self.settings, np.random.default_rng([seed, 3]))


class LogShape(LogExperiment):
    name = "log_shape"
    title = "The log: confidence, uncertainty, frequencies"
    seeds = (1,)

    def __init__(self, *, small: bool) -> None:
        super().__init__(small=small)
        self.settings |= {"dropout_draws": 20}

    def run(self, seed: int, data: Data) -> Json:
        crowd = self.crowd(data, seed)
        counts, said = crowd.log.counts, crowd.log.said
        confidence, entropy = crowd.dropout(self.settings["dropout_draws"], np.random.default_rng([seed, 4]))
        ranks = np.unique(np.geomspace(1, len(counts), 60).astype(int))
        frequency = np.bincount(np.minimum(counts, 20), minlength=21)[1:]
        return {
            "lines": len(said),
            "texts": len(counts),
            "once": float((counts == 1).mean()),
            "once_of_lines": float((counts == 1).sum() / len(said)),
            "people": len(np.unique(crowd.log.people)),
            "positive": float(crowd.log.pool.positive.mean()),
            "ranks": ranks.tolist(),
            "count_at_rank": np.sort(counts)[::-1][ranks - 1].tolist(),
            "frequency": frequency.tolist(),
            "confidence": np.histogram(confidence, bins=20, range=(0.5, 1))[0].tolist(),
            "entropy": np.histogram(entropy, bins=20, range=(0, np.log(2)))[0].tolist(),
            "bootstrap_accuracy": crowd.accuracy(np.empty(0, dtype=np.intp)),
        }

    def claims(self, result: Json) -> list[Claim]:
        logs = np.log(result["ranks"]), np.log(result["count_at_rank"])
        line = np.polyfit(logs[0][result["count_at_rank"] > np.array(1)], logs[1][logs[1] > 0], 1)[0]
        return [
            Claim(
                "Most distinct queries were seen just once (figure 1c).",
                f"{result['once']:.0%} of {result['texts']:,} texts, {result['once_of_lines']:.1%} of "
                f"{result['lines']:,} lines",
                result["once"] > 0.5,
                "more than half of the texts; drawn so",
            ),
            Claim(
                "Frequencies fall like a power of the rank (figure 1d).",
                f"log count falls by {-line:.2f} for each unit of log rank",
                bool(0.8 <= -line <= 2),
                "slope between .8 and 2; drawn so",
            ),
        ]

    def charts(self, result: Json) -> list[PaperFigure]:
        confidence, entropy = np.linspace(0.5, 1, 21)[:-1] + 0.0125, np.linspace(0, np.log(2), 21)[:-1] + 0.0173
        return [
            PaperFigure(
                "log_shape",
                "Confidence, uncertainty and frequency of unique queries",
                f"{shown_on(self.settings)} Confidence and entropy are of the mean over "
                f"{self.settings['dropout_draws']} dropout draws of a model that saw {self.settings['golden']} golden "
                "texts: most texts are doubtful to it. Most texts occur once (20: and more).",
                [
                    Panel(
                        [PaperSeries("texts", confidence.tolist(), result["confidence"], style="bars")],
                        "confidence",
                        "texts",
                    ),
                    Panel(
                        [PaperSeries("texts", entropy.tolist(), result["entropy"], style="bars")],
                        "entropy, nats",
                        "texts",
                    ),
                    Panel(
                        [PaperSeries("texts", list(range(1, 21)), result["frequency"], style="bars")],
                        "times said",
                        "texts",
                    ),
                    Panel(
                        [PaperSeries("count", result["ranks"], result["count_at_rank"])],
                        "rank",
                        "times said",
                        x_log=True,
                        y_log=True,
                    ),
                ],
            )
        ]

    def costs(self, result: Json) -> list[str]:
        return [
            f"{result['people']:,} people; {result['positive']:.0%} of the texts are about money, so a model that "
            f"always says no is right {1 - result['positive']:.0%} of the time; with the golden set alone it is "
            f"{result['bootstrap_accuracy']:.3f}.",
            "Figure 1 shows counts of the full data: published, that would cost as well.",
        ]
