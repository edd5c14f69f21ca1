"""Estimates of sketches on a query log beside exact counts."""

import numpy as np
import pyarrow as pa

from learner.papers.experiment import Claim, Data, Experiment, Json, PaperTable
from learner.papers.query_log import LogOf
from privacy.gate.count_mean_min import CountMeanMinSketch
from privacy.gate.count_min import CountMinSketch
from privacy.gate.hashing import hash_texts


class SketchCounts(Experiment):
    name = "sketches"
    title = "Count-mean-min and count-min against exact counts"

    def __init__(self, log_of: LogOf, *, small: bool) -> None:
        self.log_of, self.needs_data = log_of, not small
        self.settings: Json = {
            "widths": [256, 1_024] if small else [2**10, 2**12, 2**14, 2**16],
            "depth": 4,
            "k": 20,
            "batch": 20_000,
        }
        self.seeds = (81,)

    def run(self, seed: int, data: Data) -> Json:
        log = self.log_of(self.settings, data, seed)
        hashes = hash_texts(pa.array(log.pool.texts, pa.large_string()), key=np.random.default_rng([seed, 2]).bytes(16))
        rows = []
        for width in self.settings["widths"]:
            row: Json = {"width": width}
            for name, kind in (("mean_min", CountMeanMinSketch), ("min", CountMinSketch)):
                sketch = kind(width, self.settings["depth"])
                for start in range(0, len(log.said), self.settings["batch"]):
                    sketch.update(hashes[log.said[start : start + self.settings["batch"]]])
                error = sketch.estimate(hashes) - log.counts
                passes, should = sketch.estimate(hashes) >= self.settings["k"], log.counts >= self.settings["k"]
                row[name] = {
                    "bias": float(error.mean()),
                    "mean_absolute": float(np.abs(error).mean()),
                    "largest": int(error.max()),
                    "smallest": int(error.min()),
                    "wrongly_out": int((passes & ~should).sum()),
                    "wrongly_held": int((~passes & should).sum()),
                }
            rows.append(row)
        return {"rows": rows, "texts": len(log.counts), "passing": int((log.counts >= self.settings["k"]).sum())}

    def claims(self, result: Json) -> list[Claim]:
        mean_min, count_min = ([row[name] for row in result["rows"]] for name in ("mean_min", "min"))
        out = [row["wrongly_out"] for row in mean_min]
        return [
            Claim(
                "The sketch is adjusted so that it does not over-estimate, which could erode the guarantee.",
                f"texts under k = {self.settings['k']} let out: {', '.join(map(str, out))} for widths "
                f"{self.settings['widths']}",
                max(out) == 0,
                "no text under k is let out at any width",
            ),
            Claim(
                "Count-mean-min is closer to the truth than count-min.",
                "mean absolute error "
                + "; ".join(
                    f"{a['mean_absolute']:.2f} against {b['mean_absolute']:.2f}"
                    for a, b in zip(mean_min, count_min, strict=True)
                ),
                all(a["mean_absolute"] <= b["mean_absolute"] for a, b in zip(mean_min, count_min, strict=True)),
                "smaller or equal mean absolute error at every width, both with conservative updates",
            ),
            Claim(
                "Count-min never under-estimates, so that it may prefilter (ours).",
                f"smallest error {min(row['smallest'] for row in count_min)}",
                min(row["smallest"] for row in count_min) >= 0,
                "no negative error at any width",
            ),
        ]

    def tables(self, result: Json) -> list[PaperTable]:
        rows = [
            [
                str(row["width"]),
                title,
                f"{at['bias']:+.2f}",
                f"{at['mean_absolute']:.2f}",
                f"{at['smallest']} to {at['largest']}",
                str(at["wrongly_out"]),
                str(at["wrongly_held"]),
            ]
            for row in result["rows"]
            for title, at in (("count-mean-min", row["mean_min"]), ("count-min", row["min"]))
        ]
        header = ("width", "sketch", "mean error", "mean absolute", "errors", "wrongly let out", "wrongly held")
        caption = f"{result['texts']:,} texts, {result['passing']:,} of them said at least {self.settings['k']} times"
        return [PaperTable(caption, header, rows)]

    def costs(self, result: Json) -> list[str]:
        return [
            "In a project a count-min prefilters the sample and an exact recount decides, so that what comes out "
            "equals the exact gate's; a sketch that decided would have a delta of at least beta for a text it "
            "over-counts."
        ]
