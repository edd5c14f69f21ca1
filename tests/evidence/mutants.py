"""The faults that must not survive, and who kills each: a new mechanism adds its own to a file of `faults/`.

A fault names a piece of code that stands once in its file, what takes its place, and tests of which each must fail. The
commonest one is noise of seven tenths of the scale that is charged.
"""

from tests.evidence.faults.accounting import ACCOUNTING
from tests.evidence.faults.answers import ANSWERS
from tests.evidence.faults.auditing import AUDITING
from tests.evidence.faults.estimators import ESTIMATORS
from tests.evidence.faults.features import FEATURES
from tests.evidence.faults.gates import GATES
from tests.evidence.faults.ledger import LEDGER
from tests.evidence.faults.mechanisms import NOISE
from tests.evidence.faults.populations import POPULATIONS
from tests.evidence.faults.reading import READING
from tests.evidence.faults.selection import SELECTION

KINDS = {
    "Models": ESTIMATORS,
    "Mechanisms": NOISE,
    "Gates": GATES,
    "Accounting": ACCOUNTING,
    "Selection": SELECTION,
    "Randomised answers": ANSWERS,
    "Ledger": LEDGER,
    "Populations": POPULATIONS,
    "What strangers check with": AUDITING,
    "Rows": FEATURES,
    "What is made of a release": READING,
}
MUTANTS = [mutant for mutants in KINDS.values() for mutant in mutants]
