"""Faults in the rows that mechanisms lean on: how long they are, and what is found in the pool for them first."""

from tests.evidence.planting import Mutant

PAID = "tests/web/annotation/choices/test_new_paid_featurizer.py"

FEATURES = [
    Mutant(
        "rows that are clipped to twice the bound",
        "client/src/dpal/features/clipping.py",
        "wide[long] *= (norm_bound * (1 - 2 * room) / norms[long])[:, None]",
        "wide[long] *= (2 * norm_bound * (1 - 2 * room) / norms[long])[:, None]",
        ("tests/pure/client/features/test_clipping.py::test_true_norm_is_within_the_bound",),
    ),
    Mutant(
        "rows that are rounded to the nearest number",
        "client/src/dpal/features/clipping.py",
        "narrow[grown] = np.nextafter(narrow[grown], np.float32(0))",
        "pass",
        ("tests/pure/client/features/test_clipping.py::test_rounding_never_grows_a_number",),
    ),
    Mutant(
        "a private start before what its features need is found in the pool",
        "annotation/data/services/charged_start.py",
        "    if reason := no_start_before(project.settings):",
        '    if reason := "":',
        (f"{PAID}::test_nothing_starts_before_it",),
    ),
    Mutant(
        "public examples that are read before what their features need is found in the pool",
        "learner/pools/records.py",
        "    if no_start_before(project.settings):",
        "    if False:",
        (f"{PAID}::test_nothing_starts_before_it",),
    ),
    Mutant(
        "features found in the pool at a price that nobody reckons with",
        "learner/pools/selectors.py",
        "return [] if finding is None or",
        "return [] if True or",
        ("tests/db/learner/pools/test_projections.py::test_the_forecast_counts_the_directions_until_they_are_paid",),
    ),
]
