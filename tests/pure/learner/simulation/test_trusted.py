import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from sklearn.datasets import load_digits

from learner.estimators.descriptions import ClassDescription
from learner.simulation.reading import FileColumns, read_descriptions, read_records, read_task
from learner.simulation.task import SimulationTask
from learner.simulation.trusted import TrustedSettings, course, simulate_trusted
from privacy.mechanisms.randomness import SimulationRandom

WORDS = {
    "music": ["song", "jazz", "album", "playlist", "guitar", "melody", "radio", "concert"],
    "weather": ["rain", "snow", "forecast", "temperature", "wind", "sunny", "storm", "cloud"],
    "money": ["bank", "balance", "account", "transfer", "payment", "credit", "loan", "savings"],
}
FRAMES = ["tell me about the {} please", "what about {} now", "{} and {}", "i would like some {}", "show {} {} today"]


def spoken(n, classes, *, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(classes), size=n)
    texts = []
    for number, label in enumerate(labels):
        frame = FRAMES[rng.integers(len(FRAMES))]
        words = rng.choice(WORDS[classes[label]], frame.count("{}"))
        texts.append(frame.format(*words) + f" {number}")
    return tuple(texts), labels


def task_of(classes=("music", "weather", "money"), n=600, **changes):
    texts, labels = spoken(n, classes, seed=1)
    test_texts, test_labels = spoken(150, classes, seed=2)
    values = {"texts": texts, "labels": labels, "test_texts": test_texts, "test_labels": test_labels}
    return SimulationTask(**(values | {"classes": tuple(classes), "label_counts": (60, 300), "seeds": 3} | changes))


@pytest.mark.parametrize("classes", [("music", "weather"), ("music", "weather", "money")])
def test_a_project_learns_and_beats_what_it_must(classes):
    outcome = simulate_trusted(task_of(classes))
    assert [(account.epsilon, account.delta) for account in outcome.accounts] == [(2.0, 5e-6)]
    last = outcome.points[-1]
    assert last.labels == 300
    assert last.project.accuracy > last.constant.accuracy + 0.2
    assert last.no_privacy.accuracy > 0.95
    assert last.random.accuracy <= last.no_privacy.accuracy + 0.02
    assert last.version_0.accuracy > last.constant.accuracy


@pytest.mark.slow
def test_a_series_of_blocks_releases_once_each_and_gets_better():
    # Names that say nothing, so that all is learnt.
    task = replace(task_of(label_counts=(400,), settings={"selection_rate": "0.1"}), classes=("x1", "x2", "x3"))
    found = simulate_trusted(task).points[0]
    assert len(found.releases) == 2
    assert found.releases[-1] == found.project
    assert found.project.accuracy > max(found.constant.accuracy + 0.1, found.releases[0].accuracy + 0.03)
    # A plan of fewer releases has the limit for them alone, and stops there.
    three = {"selection_rate": "0.1", "block_growth": "1", "maximum_releases": "3"}
    assert len(simulate_trusted(task_of(label_counts=(60,), settings=three)).points[0].releases) == 3
    # One release of one secret sample is no series.
    assert simulate_trusted(task_of(label_counts=(60,))).points[0].releases == ()


@pytest.mark.parametrize("estimator", ["softmax_steps", "sums"])
@pytest.mark.parametrize("releases", ["1", "2", "3"])
def test_a_series_costs_the_limit_and_no_more(estimator, releases):
    blocks = {"selection_rate": "0.1", "block_growth": "2", "maximum_releases": releases}
    settings = TrustedSettings.of({"estimator": estimator} | blocks, n_classes=2)
    event, costs = None, []
    for block in range(1, int(releases) + 1):
        shape = {"prior": None, "random_state": SimulationRandom(block)}
        _estimator, event = settings.of_block(event, block=block, n_features=20, **shape)
        costs.append(event.cost())
    assert 0.999 * 2.0 <= sum(cost.epsilon for cost in costs) <= 2.0
    assert 0.999 * 5e-6 <= sum(cost.delta for cost in costs) <= 5e-6


def test_a_block_that_was_promised_less_is_refused():
    low = TrustedSettings.of({"selection_rate": "0.1", "pool_epsilon": "1"}, n_classes=2)
    high = TrustedSettings.of({"selection_rate": "0.1"}, n_classes=2)
    shape = {"prior": None, "random_state": SimulationRandom(1), "n_features": 20}
    _estimator, event = low.suited.of_block(None, block=1, **shape)
    with pytest.raises(ValueError, match="costs more"):
        high.suited.of_block(event, block=2, **shape)


def test_blocks_of_live_projects_are_what_is_played():
    """A record is asked about once at most; a running sum adds all blocks up."""
    _texts, labels = spoken(600, ("music", "weather", "money"), seed=1)
    rows = np.random.default_rng(1).normal(size=(600, 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * (1 + 1e-6)
    settings = TrustedSettings.of({"selection_rate": "0.1", "estimator": "sums"}, n_classes=3)
    _found, blocks = course(settings, rows, labels, rows, classes=("a", "b", "c"), prior=None, rng=SimulationRandom(3))
    chosen = np.concatenate(blocks)
    assert len(np.unique(chosen)) == len(chosen) < 600


@pytest.mark.parametrize("classes", [2, 10, 77])
def test_steps_are_planned_and_classes_choose_the_columns(classes):
    settings = TrustedSettings.of({}, n_classes=classes)
    assert settings.suited.estimator == "softmax_steps"
    assert settings.values["text_columns"] == {2: 256, 10: 192, 77: 192}[classes]
    assert settings.values["sentence_network"] == (classes > 2)
    # What somebody typed stays.
    typed = TrustedSettings.of({"estimator": "sums"}, n_classes=classes)
    assert typed.suited.estimator == "sums"


@pytest.mark.parametrize("estimator", ["softmax_steps", "sums"])
@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
def test_a_release_costs_the_limit_and_no_more(estimator, rate):
    settings = TrustedSettings.of({"estimator": estimator}, n_classes=2)
    trained = settings.training(rate, prior=None, rng=SimulationRandom(1))
    cost = settings.event(trained, rate=rate, n_features=20).cost()
    assert 0.999 * 2.0 <= cost.epsilon <= 2.0
    assert 0.999 * 5e-6 <= cost.delta <= 5e-6


def test_a_recipe_that_costs_more_than_the_account_holds_is_refused():
    settings = TrustedSettings.of({"estimator": "softmax_steps"}, n_classes=2)
    trained = settings.training(0.1, prior=None, rng=SimulationRandom(1))
    with pytest.raises(ValueError, match="more than the account holds"):
        settings.event(trained, rate=0.2, n_features=20)


def test_examples_make_a_version_0_that_labels_build_on():
    # Names that say nothing, so that examples are all there is.
    names = ("x1", "x2")
    described = {
        name: ClassDescription(name, examples=tuple(words[:4]))
        for name, words in zip(names, list(WORDS.values())[:2], strict=True)
    }
    task = task_of(("music", "weather"), label_counts=(8,))
    bare, helped = (simulate_trusted(replace(task, classes=names, descriptions=given)) for given in ({}, described))
    assert helped.points[0].version_0.accuracy > 0.8
    assert helped.points[0].project.accuracy > bare.points[0].project.accuracy + 0.1


def test_nobody_spends_epsilon_for_nothing_unseen():
    """With 20 labels and no help the release is worse than a constant, and the outcome says so."""
    texts, labels = spoken(500, ("music", "weather"), seed=3)
    mostly = np.where(np.arange(500) % 10 == 0, labels, 0)
    test_texts, _ = spoken(100, ("music", "weather"), seed=4)
    found = simulate_trusted(
        task_of(
            ("music", "weather"),
            texts=texts,
            labels=mostly,
            test_texts=test_texts,
            test_labels=np.zeros(100, dtype=int),
            label_counts=(20,),
            settings={"pool_epsilon": "0.05"},
        )
    )
    assert not found.points[0].beats_constant
    assert any("does not beat a constant" in note for note in found.notes)


@pytest.mark.slow
def test_images_and_rows_of_numbers():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    shape = {"texts": (), "test_texts": (), "labels": y[:1400], "test_labels": y[1400:], "classes": tuple("0123456789")}
    rows = SimulationTask(rows=X[:1400], test_rows=X[1400:], label_counts=(1400,), seeds=3, **shape)
    images = (X * 15.9).astype(np.uint8).reshape(-1, 8, 8)
    pictures = SimulationTask(rows=images[:1400], test_rows=images[1400:], label_counts=(1400,), seeds=3, **shape)
    for task in (rows, pictures):
        assert simulate_trusted(task).points[0].project.accuracy >= 0.86


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"image_colours": "red"}, "image_colours: Must be one of grey, colour, got red"),
        ({"estimator": "forest"}, "estimator must be"),
        ({"text_columns": "many"}, "text_columns must be of type int"),
        ({"colour": "red"}, "unknown settings"),
        ({"maximum_releases": "2"}, "need a selection_rate"),
        ({"selection_rate": "1"}, r"selection_rate: Must be below 1, got 1\.0"),
    ],
)
def test_settings_are_read_or_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        TrustedSettings.of(settings, n_classes=3)


class TestFiles:
    def write(self, path, rows, *, header=True, separator=","):
        lines = [separator.join(row) for row in rows]
        path.write_text("\n".join([separator.join(["text", "label", "who"]), *lines] if header else lines) + "\n")
        return path

    def rows(self, n=60):
        texts, labels = spoken(n, ("music", "weather"), seed=5)
        names = ("music", "weather")
        return [
            (text, names[label], f"p{place % 7}") for place, (text, label) in enumerate(zip(texts, labels, strict=True))
        ]

    def test_a_fifth_is_held_out_where_no_test_file_is_given(self, tmp_path):
        task = read_task(
            self.write(tmp_path / "all.csv", self.rows()),
            columns=FileColumns(contributor="who"),
            settings={},
            label_counts=[20, 10],
            seeds=1,
        )
        assert (task.n_records, len(task.test_labels)) == (48, 12)
        assert task.classes == ("music", "weather")
        assert task.label_counts == (10, 20)
        assert len(set(task.contributors)) == 7

    def test_formats(self, tmp_path):
        rows = self.rows()
        plain = self.write(tmp_path / "a.tsv", rows, header=False, separator="\t")
        lines = tmp_path / "a.jsonl"
        lines.write_text("\n".join(json.dumps({"text": text, "label": label}) for text, label, _ in rows))
        found = [
            read_records(self.write(tmp_path / "a.csv", rows), columns=FileColumns())[0],
            read_records(plain, columns=FileColumns("1", "2", has_header=False, quoting=False))[0],
            read_records(lines, columns=FileColumns())[0],
        ]
        assert found[0].texts == found[1].texts == found[2].texts
        assert found[0].labels == found[1].labels == found[2].labels
        arrays = tmp_path / "a.npz"
        np.savez(arrays, X_train=np.eye(4), y_train=np.arange(4) % 2, X_test=np.eye(4)[:2], y_test=np.array([0, 1]))
        pool, rest = read_records(arrays, columns=FileColumns())
        assert (pool.labels, rest.labels, pool.rows.shape) == (("0", "1", "0", "1"), ("0", "1"), (4, 4))

    def test_descriptions(self, tmp_path):
        path = tmp_path / "words.json"
        path.write_text(
            json.dumps(
                {
                    "classes": {"go_up": {"sentence": "rise", "examples": ["up to {floor}"]}, "go_down": ["sink"]},
                    "slots": {"floor": ["one", "two"]},
                }
            )
        )
        found = read_descriptions(path)
        assert found["go_up"].example_texts == ("up to one", "up to two")
        assert (found["go_up"].name, found["go_down"].examples) == ("go up", ("sink",))
        path.write_text(json.dumps({"go_up": "rise", "go_down": 3}))
        with pytest.raises(ValueError, match="go_down: must be"):
            read_descriptions(path)
        table = tmp_path / "words.csv"
        for head in ("class,example", "label,text"):
            table.write_text(f'{head}\ngo_up,rise\ngo_up,"climb, quickly"\ngo_down,sink\n')
            assert read_descriptions(table)["go_up"].examples == ("rise", "climb, quickly")

    def test_the_command_prints_json_and_nothing_else(self, tmp_path, capsys):
        path = self.write(tmp_path / "all.csv", self.rows(200))
        call_command("simulate", data=path, preset="pool-experts", labels="40,100", seeds=2, json=True)
        body = json.loads(capsys.readouterr().out)
        assert [point["labels"] for point in body["points"]] == [40, 100]
        assert body["accounts"] == [{"scope": "pool", "unit": "record", "epsilon": 2.0, "delta": 5e-6}]
        call_command("simulate", data=path, preset="pool-experts", labels="40", seeds=2, set=["pool_epsilon=1"])
        assert "epsilon 1, delta 5e-06" in capsys.readouterr().out

    @pytest.mark.slow
    def test_no_server_is_started(self, tmp_path):
        path = self.write(tmp_path / "all.csv", self.rows())
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DPAL_")}
        command = ["simulate", "--data", path, "--preset", "pool-experts", "--labels", "20", "--seeds", "1", "--json"]
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=settings.BASE_DIR,
            env=environment | {"DPAL_VAR": str(tmp_path / "var")},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        assert json.loads(done.stdout)["points"][0]["labels"] == 20
        assert not list(tmp_path.glob("var/postgres*"))

    @pytest.mark.parametrize(
        "options", [{"set": ["pool_epsilon"]}, {"labels": "1000"}, {"text_column": "words"}, {"labels": "few"}]
    )
    def test_what_cannot_be_played_is_refused_in_words(self, tmp_path, options):
        path = self.write(tmp_path / "all.csv", self.rows())
        with pytest.raises(CommandError):
            call_command("simulate", **({"data": path, "preset": "pool-experts", "seeds": 1} | options))
