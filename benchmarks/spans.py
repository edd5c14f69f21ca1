"""Spans learned under differential privacy beside python-crfsuite without: `spans.py --data DIR [--write]`.

Goals: entity F1 at least .53 at epsilon 4 on SLURP, 80 % of the same estimator without privacy, never below version 0,
and at most 8 s of one core for a fit. The peer is optional: `pip install python-crfsuite==0.9.12`.
"""

import argparse
import importlib.util
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from dpal.spans.model import SpanModel
from dpal.spans.scoring import ANY, FEWEST, counted, f1_of, scores
from dpal.spans.text import Span, spans_of, tags, tokens
from learner.estimators.descriptions import described_by
from learner.estimators.span_crf import PrivateSpanCrf
from learner.estimators.span_words import fit_public, span_version_zero
from learner.features.span_tables import span_features

WORDS = Path(__file__).parent / "trials" / "span_words.txt"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "spans.md"
TYPES, EPSILONS, DELTA, TEST = 10, (4.0, 2.0, 1.0), 1e-6, 1500
GOAL, LEAST_SHARE, MOST_SECONDS = 0.53, 0.8, 8.0
HEAD = """# Spans

Made by `python benchmarks/spans.py --data DIR --write`; do not edit. SLURP, its ten commonest types,
delta {delta:g}. Entity F1 on {test:,} held-out texts, mean of {seeds} seeds (least to most). Version 0 and every start
are made of the lines of `benchmarks/trials/span_words.txt`, written from the names of the types alone.

"""
BY_TYPE = """
At epsilon {epsilon:g} and {records:,} records, by type with 95 % intervals; under {fewest} spans are too few to say.
Open-ended names stay weak.

| type | spans | F1 | interval |
|---|---|---|---|
"""
Spans = tuple[Span, ...]


def read(folder: Path) -> tuple[list[str], list[Spans], tuple[str, ...]]:
    """Return texts with their spans of the commonest types."""
    lines = [json.loads(line) for line in (folder / "slurp_spans.jsonl").read_text("utf-8").splitlines()]
    common = Counter(span["label"] for line in lines for span in line["spans"]).most_common(TYPES)
    types = tuple(sorted(name for name, _count in common))
    spans = [
        tuple(Span(each["start"], each["end"], each["label"]) for each in line["spans"] if each["label"] in types)
        for line in lines
    ]
    return [line["text"] for line in lines], spans, types


def word_features(words: Sequence[str], place: int) -> list[str]:
    word = words[place].lower()
    found = ["bias", f"w={word}", f"s2={word[-2:]}", f"s3={word[-3:]}", f"d={any(map(str.isdigit, word))}"]
    for by in (-2, -1, 1, 2):
        near = words[place + by].lower() if 0 <= place + by < len(words) else "-"
        found.append(f"{by}={near}")
    return found


def crfsuite(texts: list[str], spans: list[Spans], held: list[str], types: Sequence[str], path: str) -> list[Spans]:
    """Return what the peer, a CRF over words, finds after learning without privacy."""
    import pycrfsuite  # optional

    trainer = pycrfsuite.Trainer(verbose=False)
    for text, known in zip(texts, spans, strict=True):
        words = [text[start:end] for start, end in tokens(text)]
        tagged = [str(tag) for tag in tags(text, known, types)]
        trainer.append([word_features(words, place) for place in range(len(tagged))], tagged)
    trainer.set_params({"c1": 0.1, "c2": 0.1, "max_iterations": 100, "feature.possible_transitions": True})
    trainer.train(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    found = []
    for text in held:
        words = [text[start:end] for start, end in tokens(text)]
        tagged = [int(tag) for tag in tagger.tag([word_features(words, place) for place in range(len(words))])]
        found.append(spans_of(text, tagged, types))
    return found


def measure(folder: Path, *, records: int, seeds: int) -> dict[str, Any]:
    texts, spans, types = read(folder)
    features, described = span_features(), described_by(WORDS.read_text("utf-8").splitlines(), types)
    zero = span_version_zero(types, described, features)
    results: dict[str, list[float]] = {}
    every: dict[str, list[Any]] = {}
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(texts))
        mine, other = order[:records], order[records : records + TEST]
        train = [texts[place] for place in mine], [spans[place] for place in mine]
        held, truth = [texts[place] for place in other], [spans[place] for place in other]

        def judge(name: str, found: Sequence[Any], truth: list[Spans] = truth) -> None:
            counts = counted(truth, found, types)
            every.setdefault(name, []).append(counts)
            results.setdefault(name, []).append(f1_of(*counts.sum(axis=(0, 1)).tolist()))

        judge("version 0", SpanModel(types, zero, features).predict(held))
        for epsilon in EPSILONS:
            estimator = PrivateSpanCrf(
                epsilon, types=types, features=features, delta=DELTA, prior=zero, random_state=seed
            )
            judge(f"epsilon {epsilon:g}", estimator.fit(*train).predict(held))
        judge("no privacy", SpanModel(types, fit_public(*train, types, features, prior=zero), features).predict(held))
        if importlib.util.find_spec("pycrfsuite"):
            judge("python-crfsuite, no privacy", crfsuite(*train, held, types, f"/tmp/spans-{os.getpid()}.crfsuite"))
        print(seed, {name: round(values[-1], 3) for name, values in results.items()}, flush=True)
    begun = time.process_time()
    PrivateSpanCrf(EPSILONS[0], types=types, features=features, delta=DELTA, prior=zero).fit(*train)
    seconds = time.process_time() - begun
    best = np.concatenate(every[f"epsilon {EPSILONS[0]:g}"])
    return {"records": records, "f1": results, "seconds": seconds, "types": scores(best, types)}


def broken(report: dict[str, Any]) -> list[str]:
    """Return the goals that are missed."""
    mean = {name: float(np.mean(values)) for name, values in report["f1"].items()}
    first = f"epsilon {EPSILONS[0]:g}"
    found = [] if mean[first] >= GOAL else [f"F1 {mean[first]:.3f} at {first}, where {GOAL} is the goal"]
    if mean[first] < LEAST_SHARE * mean["no privacy"]:
        found.append(f"{mean[first] / mean['no privacy']:.0%} of no privacy, where {LEAST_SHARE:.0%} is the goal")
    found += [f"{name} is below version 0" for name in report["f1"] if mean[name] < mean["version 0"]]
    if report["seconds"] > MOST_SECONDS:
        found.append(f"{report['seconds']:.1f} s for a fit, where {MOST_SECONDS:g} is the limit")
    return found


def page(reports: Sequence[dict[str, Any]], *, seeds: int) -> str:
    names = list(reports[0]["f1"])
    head = f"| records | {' | '.join(names)} | core seconds a fit |\n|---|{'---|' * (len(names) + 1)}\n"
    parts = [HEAD.format(test=TEST, seeds=seeds, delta=DELTA), head]
    for report in reports:
        cells = [f"{np.mean(v):.3f} ({min(v):.3f} to {max(v):.3f})" for v in report["f1"].values()]
        parts.append(f"| {report['records']:,} | {' | '.join(cells)} | {report['seconds']:.1f} |\n")
    parts.append(BY_TYPE.format(epsilon=EPSILONS[0], records=reports[-1]["records"], fewest=FEWEST))
    for name, one in reports[-1]["types"].items():
        said = "too few to say" if one.f1 is None else f"{one.f1:.2f}"
        span = "" if one.f1 is None else f"{one.low:.2f} to {one.high:.2f}"
        parts.append(f"| {'all' if name == ANY else name} | {one.spans} | {said} | {span} |\n")
    missed = [one for report in reports for one in broken(report)]
    parts.append("\nAll goals are reached.\n" if not missed else "\nMissed: " + "; ".join(missed) + ".\n")
    return "".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--records", type=int, nargs="+", default=[2000])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write docs/results/spans.md")
    given = parser.parse_args()
    reports = [measure(given.data, records=records, seeds=given.seeds) for records in given.records]
    print(text := page(reports, seeds=given.seeds))
    if given.write:
        PAGE.write_text(text, "utf-8")
    return 1 if any(map(broken, reports)) else 0


if __name__ == "__main__":
    sys.exit(main())
