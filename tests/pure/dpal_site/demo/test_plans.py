import io

import numpy as np
import pyarrow.parquet as pq
import pytest

from annotation.choices.presets import PRESETS, broken_rules
from dpal_site.demo import plans, report

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
    labels_per_release = len(task.label_counts) if plan.preset == plans.CROWD else len(plans.DIGIT_BLOCKS.block_rates)
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
