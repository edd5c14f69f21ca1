"""Faults in what strangers check with: an audit or a witness that takes what it must refuse."""

from tests.evidence.planting import Mutant

STATEMENT = "tests/web/annotation/budget/test_statement_audit.py"
WITNESS = "tests/pure/privacy/ledger/auditor/test_witness.py"

AUDITING = [
    Mutant(
        "a statement that anybody may sign",
        "privacy/ledger/auditor/statement.py",
        '    whole.expect(0, "signature", "of other bytes or another key" if not fits else "fits", "fits")\n',
        "",
        (f"{STATEMENT}::test_what_only_the_signature_covers_is_refused",),
    ),
    Mutant(
        "a statement whose checkpoint is of other entries",
        "privacy/ledger/auditor/statement.py",
        '        self.verdict.expect(0, "checkpoint root", shown.root.hex(), root_of(leaves).hex())\n',
        "",
        (f"{STATEMENT}::test_a_forger_who_computes_every_hash_anew_is_refused_by_the_checkpoint",),
    ),
    Mutant(
        "an audit that forgets what a witness saw",
        "privacy/ledger/auditor/statement.py",
        '        whole.expect(0, f"entries of {origin}", len(leaves), max(len(leaves), kept.size))\n',
        "",
        (f"{STATEMENT}::test_the_site_itself_cannot_rewrite_what_was_noted_or_witnessed",),
    ),
    Mutant(
        "a witness that takes a shorter ledger",
        "privacy/ledger/auditor/witness.py",
        "    if shown.size < seen.size:",
        "    if shown.size < 0:",
        (f"{WITNESS}::test_what_forgot_or_forked_is_refused_and_nothing_is_kept_of_it",),
    ),
    Mutant(
        "a witness that takes another past",
        "privacy/ledger/auditor/witness.py",
        "    if not verify_consistency(seen.size, seen.root, shown.size, shown.root, hashes):",
        "    if not hashes:",
        (f"{WITNESS}::test_what_forgot_or_forked_is_refused_and_nothing_is_kept_of_it",),
    ),
    Mutant(
        "a witness that misses no account",
        "privacy/ledger/auditor/witness.py",
        "        gone = sorted(self.notes.keys() - fresh.keys())",
        "        gone = sorted(self.notes.keys() - self.notes.keys())",
        (f"{WITNESS}::test_what_forgot_or_forked_is_refused_and_nothing_is_kept_of_it",),
    ),
    Mutant(
        "a checkpoint of any key",
        "privacy/ledger/auditor/notes.py",
        "        if not is_signed(text.encode(), signature[4:], public_key=public_key):",
        "        if not signature:",
        ("tests/pure/privacy/ledger/auditor/test_notes.py::test_every_changed_byte_is_refused",),
    ),
]
