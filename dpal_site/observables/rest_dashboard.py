"""Fields of the route that gives the dashboard's tables, by the schemas of its description."""

from dpal_site.observables.kinds import MODELS, Basis, Shown, for_managers

REST_DASHBOARD = (
    Shown(
        "SpendingRowOut PurposeRowOut",
        "account when by name operations epsilon rho delta percent epsilon_spent epsilon_left epsilon_limit",
        MODELS,
        Basis.BOOKKEEPING,
        "sums over the entries, as in `spending.csv` and `purposes.csv`; times to the second",
    ),
    Shown("ReleaseRowOut", "project version test_set examples", MODELS, Basis.PUBLIC, "a public test set"),
    Shown("ReleaseRowOut", "accuracy low high", MODELS, Basis.DERIVED, "the released model on public examples"),
    for_managers(
        "LabelDayOut AnnotatorRowOut",
        "*",
        "how many answers there are, and by whom; no row where that is secret, for files travel",
    ),
)
