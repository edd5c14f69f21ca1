import io

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from PIL import Image

from annotation.choices.presets import PRESETS, broken_rules
from dpal_site.demo import plans, real_data, report
from dpal_site.demo.annotators import LabelPage

PLANS = {plan.name: plan for plan in plans.default_plans()}


@pytest.mark.parametrize("plan", PLANS.values(), ids=lambda plan: plan.name)
def test_every_project_is_a_combination_with_a_proof(plan):
    chosen = PRESETS[plan.preset]
    values = {
        **chosen.defaults,
        **plan.settings,
        "oracle": chosen.oracle,
        "data_kind": plan.data_kind,
        "classes": list(plan.classes),
    }
    assert broken_rules(values) == {}


@pytest.mark.parametrize("plan", PLANS.values(), ids=lambda plan: plan.name)
def test_what_is_simulated_is_what_is_opened(plan):
    """As many releases and records, the same classes, and answers with the people's mistakes."""
    task = plan.task
    assert task.classes == plan.classes
    labels_per_release = len(task.label_counts) if plan.preset == plans.CROWD else len(plans.BLOCKS.block_rates)
    assert labels_per_release == plan.releases
    assert 0 < task.label_counts[-1] <= task.n_records
    medians = report.Compared.of_medians(plan.name)
    assert len(medians.releases) == plan.releases
    assert medians.releases[-1] > max(medians.random, medians.constant, medians.version_0 or 0)


def test_the_digits_are_in_the_file_without_their_labels():
    plan = PLANS["Digits"]
    pool = pq.read_table(io.BytesIO(plan.pool.body))
    assert pool.column_names == ["pixels"]
    tested = pq.read_table(io.BytesIO(plan.test.body))
    assert pool.num_rows + tested.num_rows == 1797
    assert set(tested["label"].to_pylist()) == set("0123456789")


def test_people_err_at_their_rate_and_never_by_chance_rightly():
    truth = np.arange(100_000) % 10
    said = plans.with_mistakes(truth, 10, np.random.default_rng(1))
    assert np.mean(said != truth) == pytest.approx(0.03, abs=0.003)


class OneImage:
    def __init__(self, pixels: np.ndarray) -> None:
        self._pixels = pixels

    def fetch(self, path: str) -> tuple[str, bytes]:
        sink = io.BytesIO()
        Image.fromarray(self._pixels).save(sink, format="PNG")
        return path, sink.getvalue()


def test_annotators_know_a_digit_by_its_pixels():
    plan = PLANS["Digits"]
    rows = pq.read_table(io.BytesIO(plan.pool.body))["pixels"].to_pylist()
    images = [np.array(row, dtype=np.uint8).reshape(8, 8) for row in rows]
    page = LabelPage("http://site/", '<div id="question"><img src="/image.png"></div>')
    assert page.image_url == "/image.png"
    answers = [plan.answer(page, OneImage(image)) for image in images]
    # A zero is open in the middle, where a one is black.
    middle = np.array([image[3:5, 3:5].sum() for image in images])
    assert middle[np.array(answers) == 1].mean() > 2 * middle[np.array(answers) == 0].mean()


COLUMNS = {"text_column": "text", "label_column": "label"}


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_file_without_a_header_is_read_by_column_numbers(tmp_path):
    path = write(tmp_path / "mail.tsv", ['ham\tsay "yes', "spam\twin, now", "broken", "ham\t "])
    found = real_data.read_labelled_texts(path, text_column="2", label_column="1")
    assert (found.texts, found.labels) == (['say "yes', "win, now"], ["ham", "spam"])


def test_a_file_with_a_header_is_read_by_names(tmp_path):
    path = write(tmp_path / "mail.csv", ["id,label,text", '1,ham,"hello, you"', "2,spam,win"])
    found = real_data.read_labelled_texts(path, text_column="text", label_column="label")
    assert (found.texts, found.labels) == (["hello, you", "win"], ["ham", "spam"])


def test_classes_are_few_and_equally_frequent():
    labels = ["a"] * 50 + ["b"] * 20 + ["c"] * 30
    kept, note = real_data.kept_classes(real_data.LabelledTexts([f"t{n}" for n in range(100)], labels))
    assert sorted(kept.labels) == ["a"] * 20 + ["b"] * 20 + ["c"] * 20
    assert "20 examples of each" in note
    many = [f"class {n % 24:02}" for n in range(240)] + ["rest"] * 100
    kept, note = real_data.kept_classes(real_data.LabelledTexts([f"t{n}" for n in range(340)], many))
    assert set(kept.labels) == {f"class {n:02}" for n in range(20)}
    assert "of 25" in note


def test_a_text_that_an_upload_takes_for_another_is_read_once(tmp_path):
    texts = [f"sentence {n}" for n in range(200)]
    rows = [text for text in texts for text in (text, f"{text.upper()}!")]
    lines = [f"{text},{'odd' if int(text.split()[1].strip('!')) % 2 else 'even'}" for text in rows]
    trusted, _crowd = real_data.read_plans(write(tmp_path / "a.csv", ["text,label", *lines, "...,odd"]), **COLUMNS)
    parts = [pa_csv.read_csv(io.BytesIO(one.body))["text"].to_pylist() for one in (trusted.pool, trusted.test)]
    assert sorted(parts[0] + parts[1]) == sorted(texts)


@pytest.mark.parametrize(
    ("lines", "columns", "reason"),
    [
        (["text,label", "a,x"], ("text", "label"), "at least two classes"),
        (["text,label", "a,x", "b,y"], ("text", "label"), "60 are needed"),
        (["text,label", "a,x", "b,y"], ("body", "label"), "no column 'body'"),
        (["a,x", "b,y"], ("0", "1"), "numbered from 1"),
    ],
)
def test_an_unusable_file_is_refused_with_a_reason(tmp_path, lines, columns, reason):
    path = write(tmp_path / "rows.csv", lines)
    with pytest.raises(real_data.DataProblem, match=reason):
        real_data.read_plans(path, text_column=columns[0], label_column=columns[1])


def test_a_file_becomes_a_trusted_and_a_crowd_project(tmp_path):
    rows = [f"sentence {n} about {'fruit' if n % 2 else 'tools'},{'fruit' if n % 2 else 'tools'}" for n in range(300)]
    path = write(tmp_path / "rows.csv", ["text,label", *rows])
    trusted, crowd = real_data.read_plans(path, text_column="text", label_column="label")
    assert trusted.classes == crowd.classes == ("fruit", "tools")
    pool = pa_csv.read_csv(io.BytesIO(trusted.pool.body))
    tested = pa_csv.read_csv(io.BytesIO(trusted.test.body))
    assert not set(pool["text"].to_pylist()) & set(tested["text"].to_pylist())
    assert trusted.pool.mapping == {"text": "text"}
    log = pa_csv.read_csv(io.BytesIO(crowd.pool.body))
    assert log.column_names == ["text", "contributor"]
    assert "are drawn" in crowd.about
    page = LabelPage("http://site/", '<div id="question">sentence 3  about fruit</div>')
    assert trusted.answer(page, None) == 0
