import numpy as np
import pandas as pd
import pytest
from crowdkit.metrics.data import alpha_krippendorff

from annotation.choices.label_types.coefficient import krippendorff_alpha, nominal, ordinal

# Krippendorff, "Computing Krippendorff's alpha-reliability" (2011): four observers, twelve units, gaps.
OBSERVERS = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
UNITS = [[int(row[unit]) for row in OBSERVERS if row[unit] != "."] for unit in range(12)]


@pytest.mark.parametrize(("differences", "published"), [(nominal, 0.743), (ordinal, 0.815)])
def test_the_published_example(differences, published):
    assert krippendorff_alpha(UNITS, differences) == pytest.approx(published, abs=5e-4)


def test_the_order_of_values_matters_to_the_ordinal_one_alone():
    swapped = [[{1: 5, 5: 1}.get(value, value) for value in unit] for unit in UNITS]
    assert krippendorff_alpha(swapped, nominal) == pytest.approx(krippendorff_alpha(UNITS, nominal))
    assert krippendorff_alpha(swapped, ordinal) != pytest.approx(krippendorff_alpha(UNITS, ordinal))


def test_nominal_as_another_library_has_it():

    rng = np.random.default_rng(1)
    units = [list(rng.integers(4, size=rng.integers(2, 5))) for _ in range(50)]
    rows = [(task, person, value) for task, unit in enumerate(units) for person, value in enumerate(unit)]
    other = alpha_krippendorff(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    assert krippendorff_alpha(units, nominal) == pytest.approx(other)
