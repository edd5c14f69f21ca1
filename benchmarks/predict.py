"""`dpal predict` of short texts in a CSV file, beside the bare path in numpy: `predict.py [--rows N] [--turns N]`.

The bare path reads the file by the module csv, makes the same rows, multiplies and writes. Limit: at most 1.3 times its
processor time.
"""

import argparse
import csv
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
from click.testing import CliRunner

from dpal import command_line
from dpal.features import read_featurizer
from dpal.model import SCHEMA, Model
from learner.features.static_encoder import ENCODER, TABLES, StaticEncoder

LIMIT = 1.3
CLASSES = tuple("abcde")
WORDS = ("play", "jazz", "stop", "music", "what", "weather", "paris", "tomorrow", "call", "mum", "set", "alarm")


def release(folder: Path) -> dict[str, Path]:
    """Write the files that a model is made of, with made-up weights."""
    encoder, rng = StaticEncoder(), np.random.default_rng(1)
    coef = rng.normal(size=(len(CLASSES), encoder.dimension))
    weights = {"schema": SCHEMA, "classes": CLASSES, "dimension": encoder.dimension, "multiclass": "softmax"}
    guarantee = {"accounts": [], "covered": [], "not_covered": [], "issued_at": "2026-01-01"}
    written = {
        "weights.json": json.dumps(weights | {"coef": coef.tolist(), "intercept": [0.0] * len(CLASSES)}),
        "features.json": encoder.to_json(),
        "privacy.json": json.dumps(guarantee),
        "card.md": "",
    }
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    return {name: folder / name for name in written} | {ENCODER: TABLES[encoder.table]}


def by_command(model: Model, source: Path, target: Path) -> None:
    with mock.patch.object(command_line, "opened_model", return_value=model):
        done = CliRunner().invoke(command_line.main, ["predict", "bench", str(source), "--output", str(target)])
    assert done.exit_code == 0, done.output


def by_numpy(files: dict[str, Path], source: Path, target: Path) -> None:
    weights = json.loads(files["weights.json"].read_text())
    coef, intercept = np.array(weights["coef"]), np.array(weights["intercept"])
    featurizer = read_featurizer(files)
    with source.open(newline="", encoding="utf-8") as file:
        texts = [text for (text,) in csv.reader(file)][1:]
    leaders = [rows @ coef.T + intercept for rows in featurizer.blocks(texts)]
    places = np.concatenate(leaders).argmax(axis=1).tolist()
    with target.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [("text", "predicted"), *zip(texts, (CLASSES[place] for place in places), strict=True)]
        )


def seconds(work: Callable[[], None]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, ours, bare = (folder / file for file in ("texts.csv", "ours.csv", "bare.csv"))
        lines = (" ".join(rng.choice(WORDS, size=rng.integers(2, 10))) for _ in range(options.rows))
        source.write_text("\n".join(["text", *lines]) + "\n", encoding="utf-8")
        files = release(folder)
        model = Model("bench", 1, files)
        works = (lambda: by_command(model, source, ours), lambda: by_numpy(files, source, bare))
        # In turns, so that a busy machine slows both alike.
        turns = [[seconds(work) for work in works] for _ in range(options.turns)]
        same = [*csv.reader(ours.open(newline=""))] == [*csv.reader(bare.open(newline=""))]
    command, numpy = (min(times) for times in zip(*turns, strict=True))
    print(f"dpal predict {command:.2f} s, bare path {numpy:.2f} s: {command / numpy:.2f} times, limit {LIMIT}")
    return int(not same or command > LIMIT * numpy)


if __name__ == "__main__":
    sys.exit(main())
