"""Public tasks as `manage.py simulate` reads them: files of a data folder, cut into a pool and what is held out."""

import csv
import gzip
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from dpal.features.clipping import clip_rows
from learner.simulation.reading import read_descriptions, read_task
from learner.simulation.task import SimulationTask

WORDS = Path(__file__).parents[1] / "descriptions"
Files = dict[str, Path]
Rows = list[tuple[str, str]]


@dataclass(frozen=True)
class PublicTask:
    """How a task's files are made, how many labels are looked at, and which preset plays it."""

    files: Callable[[Path, Path], Files]
    labels: tuple[int, ...]
    preset: str = "pool-experts"
    describe: str = ""
    examples: int | None = None

    def task(self, folder: Path, data: Path, *, seeds: int, **changes: Any) -> SimulationTask:
        """Read the task; `folder` holds the files made of those in `data`."""
        found = self.files(folder, data)
        values: dict[str, Any] = {"settings": {}, "label_counts": self.labels, "seeds": seeds} | changes
        task = read_task(found.pop("data"), **found, **values)
        if not self.describe:
            return task
        words = (WORDS / self.describe, data / "words" / self.describe)
        described = read_descriptions(next(path for path in words if path.exists()))
        kept = {name: said for name, said in described.items() if name in task.classes}
        first = {name: replace(said, examples=said.examples[: self.examples]) for name, said in kept.items()}
        return replace(task, descriptions=first)


def sms(folder: Path, data: Path) -> Files:
    """Spam and ham; a fifth is held out by the reader."""
    lines = (data / "SMSSpamCollection.tsv").read_text("utf-8").split("\n")
    rows = [line.split("\t", 1) for line in lines if "\t" in line]
    return {"data": written(folder / "data.csv", [(text, label) for label, text in rows])}


def intents(n_classes: int) -> Callable[[Path, Path], Files]:
    """Return a task of so many intents of CLINC150, drawn once."""

    def files(folder: Path, data: Path) -> Files:
        with (data / "clinc150_full.csv").open(encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["label"] != "oos"]
        names = sorted({row["label"] for row in rows})
        chosen = {names[place] for place in np.random.default_rng(1).permutation(len(names))[:n_classes]}
        parts = {
            part: [(row["text"], row["label"]) for row in rows if row["label"] in chosen and row["split"] == part]
            for part in ("train", "test")
        }
        return {
            "data": written(folder / "data.csv", parts["train"]),
            "test": written(folder / "test.csv", parts["test"]),
        }

    return files


def requests(*, whole: bool, scenarios: Sequence[str] = ()) -> Callable[[Path, Path], Files]:
    """Return spoken requests by intent or scenario, of some scenarios or all.

    A text is in one part only, the larger one is the pool.
    """

    def files(folder: Path, data: Path) -> Files:
        seen: dict[str, tuple[str, str]] = {}
        with (data / "slurp_dev_test_utterances.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                scenario = row["label"].split("_")[0]
                if not scenarios or scenario in scenarios:
                    seen.setdefault(row["text"], (row["label"] if whole else scenario, row["split"]))
        parts = {
            part: [(text, label) for text, (label, found) in seen.items() if found == part]
            for part in ("test", "devel")
        }
        return {
            "data": written(folder / "data.csv", parts["test"]),
            "test": written(folder / "test.csv", parts["devel"]),
        }

    return files


def digits(folder: Path, _data: Path) -> Files:
    """All ten digits of scikit-learn, as images of 8 by 8 pixels."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    X = np.round(X * 255 / 16).astype(np.uint8).reshape(-1, 8, 8)
    np.savez(folder / "digits.npz", X_train=X[:1437], y_train=y[:1437], X_test=X[1437:], y_test=y[1437:])
    return {"data": folder / "digits.npz"}


def attacks(folder: Path, data: Path) -> Files:
    """KDD connections by declared bounds, one in twelve."""
    task = kdd_task(data)
    parts = {"X_train": task.X, "y_train": task.y, "X_test": task.test_rows, "y_test": task.test_labels}
    np.savez(folder / "kdd.npz", **parts)
    return {"data": folder / "kdd.npz"}


def written(path: Path, rows: Rows) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


CROWD_LABELS = (60, 120, 180)
TASKS = {
    "SMS spam": PublicTask(sms, (470, 1880)),
    "SMS spam, described": PublicTask(sms, (470, 1880), describe="sms_spam.json"),
    "MNIST 0/9": PublicTask(lambda _folder, data: {"data": data / "mnist_0_9.npz"}, (500, 2000)),
    "KDD": PublicTask(attacks, (500, 2000)),
    "ten digits": PublicTask(digits, (500, 1437)),
    "CLINC 2": PublicTask(intents(2), (50, 200)),
    "CLINC 10": PublicTask(intents(10), (100, 1000)),
    "CLINC 10, five examples": PublicTask(intents(10), (100, 1000), describe="clinc150.json", examples=5),
    "CLINC 10, ten examples": PublicTask(intents(10), (100, 1000), describe="clinc150.json", examples=10),
    "CLINC 50": PublicTask(intents(50), (500, 5000)),
    "CLINC 50, five examples": PublicTask(intents(50), (500, 5000), describe="clinc150.json", examples=5),
    "CLINC 50, ten examples": PublicTask(intents(50), (500, 5000), describe="clinc150.json", examples=10),
    "CLINC 77": PublicTask(intents(77), (770, 7700)),
    "CLINC 77, five examples": PublicTask(intents(77), (770, 7700), describe="clinc150.json", examples=5),
    "CLINC 77, ten examples": PublicTask(intents(77), (770, 7700), describe="clinc150.json", examples=10),
    "CLINC 150": PublicTask(intents(150), (1500, 15000)),
    "CLINC 150, five examples": PublicTask(intents(150), (1500, 15000), describe="clinc150.json", examples=5),
    "CLINC 150, ten examples": PublicTask(intents(150), (1500, 15000), describe="clinc150.json", examples=10),
    "SLURP 2": PublicTask(requests(whole=False, scenarios=("calendar", "email")), (70, 650)),
    "SLURP 18": PublicTask(requests(whole=False), (180, 2900)),
    "SLURP 18, five examples": PublicTask(requests(whole=False), (180, 2900), describe="slurp18.json", examples=5),
    "SLURP 18, ten examples": PublicTask(requests(whole=False), (180, 2900), describe="slurp18.json"),
    "SLURP 60": PublicTask(requests(whole=True), (600, 2900)),
    "SLURP 60, five examples": PublicTask(requests(whole=True), (600, 2900), describe="slurp60.json"),
    "SLURP 18, crowd": PublicTask(requests(whole=False), CROWD_LABELS, preset="voice-crowd"),
    "SLURP 18, ten examples, crowd": PublicTask(
        requests(whole=False), CROWD_LABELS, preset="voice-crowd", describe="slurp18.json"
    ),
    "SLURP 60, crowd": PublicTask(requests(whole=True), CROWD_LABELS, preset="voice-crowd"),
    "SMS spam, crowd": PublicTask(sms, CROWD_LABELS, preset="voice-crowd"),
    "CLINC 10, crowd": PublicTask(intents(10), CROWD_LABELS, preset="voice-crowd"),
}


POOL_ROWS = 20_000
KDD_LOGARITHMIC = (0, 4, 5, 9, 12, 15)
KDD_WORDS = {1: ("tcp", "udp", "icmp"), 3: ("SF", "S0", "REJ", "RSTR", "RSTO", "SH", "S1", "S2", "S3", "OTH", "RSTOS0")}
KDD_SERVICE_SLOTS = 24


@dataclass(frozen=True)
class Task:
    """A pool with known labels and a test set that no recipe sees."""

    name: str
    X: np.ndarray
    y: np.ndarray
    test_rows: np.ndarray
    test_labels: np.ndarray


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Scale every row to norm one by itself, rounding outward."""
    return clip_rows(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), norm_bound=1.0)


def kdd_task(folder: Path) -> Task:
    """Tell attacks from normal connections by declared bounds, on every 12th row."""
    rows, labels = [], []
    with gzip.open(folder / "kddcup.data_10_percent.gz", "rt") as lines:
        for number, fields in enumerate(csv.reader(lines)):
            if number % 12 == 0:
                rows.append(kdd_row(fields))
                labels.append(int(fields[41] != "normal."))
    X, y = unit_rows(np.array(rows)), np.array(labels)
    order = np.random.default_rng(0).permutation(len(X))
    pool, test = order[:POOL_ROWS], order[POOL_ROWS:]
    return Task("KDD", X[pool], y[pool], X[test], y[test])


def kdd_row(fields: list[str]) -> list[float]:
    """Encode one connection: sizes by their logarithm, counts by bounds of 512, words by slots of their own."""
    row = []
    for place, field in enumerate(fields[:41]):
        if place == 2:
            slot = zlib.crc32(field.encode()) % KDD_SERVICE_SLOTS
            row += [float(slot == k) for k in range(KDD_SERVICE_SLOTS)]
        elif place in KDD_WORDS:
            row += [float(field == word) for word in KDD_WORDS[place]]
        elif place in KDD_LOGARITHMIC:
            row.append(min(1.0, math.log1p(float(field)) / 21))
        else:
            value = float(field)
            row.append(value if value <= 1 else min(1.0, value / 512))
    return row
