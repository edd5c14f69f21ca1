import io

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

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


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


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
