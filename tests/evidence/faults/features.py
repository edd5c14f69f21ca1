"""Faults in the rows that mechanisms lean on: how long they are, and what is found in the pool for them first."""

from tests.evidence.planting import Mutant

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
]
