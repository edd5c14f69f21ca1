"""Projects that mark spans are simulated on public texts."""

import io
import json
from contextlib import redirect_stdout
from dataclasses import replace

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from dpal.spans.text import Span
from learner.estimators.descriptions import described_by
from learner.estimators.span_words import span_version_zero
from learner.features.span_tables import span_features
from learner.linear_model import LinearModel
from learner.simulation.curves import references, simulated
from learner.simulation.setup import Setup, Training
from learner.simulation.spans import PublicSpans

TYPES = ("day", "name")
DAYS, NAMES = ("monday", "friday", "tomorrow"), ("Anna", "Peter Pan", "Olga")
SENTENCES = ("please call {name} on {day}", "is {name} still here", "what is due {day}", "stop all of it")
WORDS = ["name: please call {Anna|Peter Pan} now", "day: come on {monday|friday}"]
SLOTS = {"who": ["Anna", "Peter Pan"], "when": ["monday", "friday"]}
OPEN = Setup(
    n_classes=2,
    dimension=256,
    records=400,
    estimator="span_crf",
    training=Training(epsilon=8.0),
    selection="random",
    parameters={},
    labels_per_release=60,
    releases=2,
    round_size=60,
    stream=False,
    declared={"training_delta": 1e-6},
)
SECRET = replace(
    OPEN, selection="secret_sample", parameters={"selection_rate": 0.2, "block_growth": 2.0}, releases=2, records=300
)


def rows(number):
    rng = np.random.default_rng(1)
    for place in range(number):
        text = f"{rng.choice(SENTENCES)} {place}".format(name=rng.choice(NAMES), day=rng.choice(DAYS))
        found = [(text.find(word), word, kind) for kind, words in (("day", DAYS), ("name", NAMES)) for word in words]
        yield text, tuple(sorted(Span(at, at + len(word), kind) for at, word, kind in found if at >= 0))


def public(number=200, *, lines=WORDS):
    texts, spans = zip(*rows(number), strict=True)
    coef = span_version_zero(TYPES, described_by(lines, TYPES), span_features())
    zero = None if coef is None else LinearModel(coef, np.zeros(len(coef)), TYPES, "spans")
    return PublicSpans(texts, spans, TYPES, zero)


@pytest.mark.parametrize("setup", [OPEN, SECRET], ids=["open", "secret"])
def test_each_release_is_measured_beside_version_0_and_no_privacy(setup):
    points, clear = (simulated(setup, public(), seeds=1, private=private) for private in (True, False))
    assert [point.labels for point in points] == [point.labels for point in clear]
    assert len(points) == 2
    assert points[0].labels < points[1].labels
    (zero,) = references(public(), setup).values()
    assert 0.3 < zero < 0.95 < clear[-1].mean <= 1
    # Beside so few labels the noise is large, and what has not learned is not released.
    assert zero - 0.1 < points[-1].mean <= 1
    assert points == simulated(setup, public(), seeds=1)


def test_more_epsilon_finds_more_spans_and_types_may_have_no_examples():
    known = public(400, lines=[])
    assert references(known, OPEN) == {}
    setup = replace(OPEN, labels_per_release=280, releases=1)
    none, much = (
        simulated(replace(setup, training=Training(epsilon=epsilon)), known, seeds=1) for epsilon in (0.1, 100.0)
    )
    assert none[0].mean < 0.5 < 0.9 < much[0].mean


@pytest.fixture
def path(tmp_path):
    lines = [
        {"text": text, "spans": [{"start": each.start, "end": each.end, "label": each.type} for each in spans]}
        for text, spans in rows(150)
    ]
    found = tmp_path / "spans.jsonl"
    found.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return found


def test_the_command_prints_entity_f1_of_a_file_of_spans(path, tmp_path):
    words = tmp_path / "words.json"
    words.write_text(json.dumps({"classes": {"name": ["call {who}"], "day": ["on {when}"]}, "slots": SLOTS}))
    printed = io.StringIO()
    with redirect_stdout(printed):
        call_command(
            "simulate",
            data=path,
            label_column="spans",
            preset="pool-experts",
            labels="40,110",
            seeds=1,
            describe=words,
            set=["pool_epsilon=20"],
            json=True,
        )
    outcome = json.loads(printed.getvalue())
    assert [account["epsilon"] for account in outcome["accounts"]] == [20]
    assert [point["labels"] for point in outcome["points"]] == [40, 110]
    last = outcome["points"][-1]
    assert last["constant"]["accuracy"] == 0 < last["version_0"]["accuracy"] < last["no_privacy"]["accuracy"]
    assert "Entity F1" in outcome["notes"][0]


def test_the_command_plays_a_series_of_secret_blocks_and_tells_each_release(path, tmp_path):
    words = tmp_path / "words.json"
    words.write_text(json.dumps({"classes": {"name": ["call {who}"], "day": ["on {when}"]}, "slots": SLOTS}))
    printed = io.StringIO()
    with redirect_stdout(printed):
        call_command(
            "simulate",
            data=path,
            label_column="spans",
            preset="pool-experts",
            labels="90",
            seeds=1,
            describe=words,
            set=["selection_rate=0.1", "pool_epsilon=60"],
            json=True,
        )
    (point,) = json.loads(printed.getvalue())["points"]
    first, last = point["releases"]
    assert 0 < first["accuracy"] <= 1
    assert last == point["project"]


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"labels": "130"}, "within"),
        ({"preset": "voice-crowd"}, "pool-experts"),
        ({"set": ["selection_rate=0.1"], "labels": "100"}, "need a pool of"),
    ],
)
def test_what_cannot_be_simulated_is_refused(path, options, wrong):
    with pytest.raises(CommandError, match=wrong):
        call_command("simulate", **({"data": path, "label_column": "spans", "preset": "pool-experts"} | options))
