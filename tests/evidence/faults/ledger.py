"""Faults in the ledger: what was read and is given back, what is paid once and used twice."""

from tests.evidence.planting import Mutant

SERVICE = "tests/db/privacy/ledger/test_ledger.py"
COUNTER = "tests/db/privacy/ledger/test_counter.py"
ROUNDS = "tests/db/learner/rounds/test_loop.py"
RULE_TESTS = "tests/db/privacy/ledger/test_rules.py"
RULES = "privacy/ledger/migrations/sql/rules.sql"
EVENT_RULES = "privacy/ledger/migrations/sql/events.sql"
AUDITOR = "privacy/ledger/auditor/account.py"
SPECIFICATION = "privacy/ledger/rules.py"
FORGERIES = "tests/db/privacy/ledger/test_forgeries.py"

LEDGER = [
    Mutant(
        "an account that settings gave up pays beside the new one",
        "annotation/migrations/sql/guarantee_last.sql",
        "IF FOUND AND NEW.account_id IS DISTINCT FROM pool",
        "IF FALSE AND NEW.account_id IS DISTINCT FROM pool",
        (f"{ROUNDS}::test_an_account_that_settings_gave_up_meanwhile_pays_nothing",),
    ),
    Mutant(
        "a reservation does not wait for settings that change",
        "annotation/migrations/sql/guarantee_last.sql",
        "WHERE slug = owner FOR KEY SHARE;",
        "WHERE slug = owner;",
        (f"{ROUNDS}::test_a_reservation_waits_for_settings_that_change",),
    ),
    Mutant(
        "attempts that had read rows get their reservations back",
        "privacy/ledger/services.py",
        "            charge(reservation=reservation, reason",
        "            void(reservation=reservation, reason",
        (
            "tests/db/learner/trainings/test_fitting.py::test_a_training_that_dies_stays_charged_and_the_next_attempt_releases",
            "tests/db/annotation/gates/test_runs.py::test_an_attempt_that_breaks_is_charged_and_lost",
            "tests/db/learner/starts/test_charged_training.py::test_an_attempt_after_a_dead_one_pays_anew",
        ),
    ),
    Mutant(
        "a stale reservation is given back",
        "privacy/ledger/services.py",
        "_settle(reservation, EntryKind.CHARGE, reason=as_message(",
        "_settle(reservation, EntryKind.VOID, reason=as_message(",
        (f"{SERVICE}::test_a_stale_reservation_is_charged_and_others_are_left",),
    ),
    Mutant(
        "rows read before their reservation",
        "learner/rounds/services/training.py",
        "        reservation = attempts.reserve_attempt(",
        "        _fit(run, estimator, featurizer, progress)\n        reservation = attempts.reserve_attempt(",
        (
            "tests/db/learner/trainings/test_fitting.py::test_a_budget_spent_behind_our_back_fails_the_run_and_reads_nothing",
        ),
    ),
    Mutant(
        "the key of what was given back lets rows be read",
        "privacy/ledger/services.py",
        "            if standing.children.filter(kind=EntryKind.VOID).exists():",
        "            if standing.children.filter(kind=EntryKind.COMMIT, pk=None).exists():",
        (f"{SERVICE}::test_the_key_of_what_was_given_back_holds_nothing",),
    ),
    Mutant(
        "the same key pays twice",
        "privacy/ledger/services.py",
        "return standing\n        rule =",
        "raise\n        rule =",
        (f"{SERVICE}::test_the_same_key_pays_once",),
    ),
    Mutant(
        "a key that stands for another operation",
        "privacy/ledger/services.py",
        "if getattr(standing, field) != getattr(wanted, field):",
        "if False:",
        (f"{SERVICE}::test_a_key_cannot_stand_for_another_operation",),
    ),
    Mutant(
        "a reservation that a caller's rollback gives back",
        "privacy/ledger/services.py",
        "with transaction.atomic(durable=True):",
        "with transaction.atomic():",
        (f"{SERVICE}::test_reserve_refuses_a_transaction_that_could_be_rolled_back",),
    ),
    Mutant(
        "an output that is stored although its charge is not",
        "privacy/ledger/services.py",
        "if not transaction.get_connection().in_atomic_block:",
        "if False:",
        (f"{SERVICE}::test_commit_needs_the_transaction_of_the_output",),
    ),
    Mutant(
        "a series continued from a round that was given back",
        "privacy/ledger/services.py",
        "LedgerEntry.objects.filter(~Exists(voided), kind=EntryKind.RESERVE)",
        "LedgerEntry.objects.filter(kind=EntryKind.RESERVE)",
        (f"{SERVICE}::test_a_series_continues_only_from_a_standing_round",),
    ),
    Mutant(
        "a restored backup that gives spent epsilon back",
        "privacy/ledger/marks.py",
        "if mark.sequence >= sequence or mark.head != previous_hash:",
        "if False:",
        (f"{COUNTER}::test_only_what_follows_the_mark_is_admitted",),
    ),
    Mutant(
        "a restored backup whose number is right and whose chain is not",
        "privacy/ledger/marks.py",
        "if mark.sequence >= sequence or mark.head != previous_hash:",
        "if mark.sequence >= sequence:",
        (f"{COUNTER}::test_only_what_follows_the_mark_is_admitted",),
    ),
    Mutant(
        "a limit that admits one unit more",
        RULES,
        "NEW.epsilon_spent_nano > account.epsilon_limit_nano",
        "NEW.epsilon_spent_nano > account.epsilon_limit_nano + 1",
        (f"{SERVICE}::test_the_pure_filter_admits_its_limit_and_not_a_nano_more",),
    ),
    Mutant(
        "a limit of delta that admits one unit more",
        RULES,
        "NEW.delta_spent_atto > account.delta_sum_limit_atto",
        "NEW.delta_spent_atto > account.delta_sum_limit_atto + 1",
        (f"{SERVICE}::test_the_pure_filter_admits_its_delta_and_not_an_atto_more",),
    ),
    Mutant(
        "a limit of rho that admits one unit more",
        RULES,
        "NEW.rho_spent_nano > account.rho_limit_nano",
        "NEW.rho_spent_nano > account.rho_limit_nano + 1",
        (f"{SERVICE}::test_the_zcdp_filter_admits_its_rho_and_not_a_nano_more",),
    ),
    Mutant(
        "a charge that gives its amount back",
        RULES,
        "IF NEW.kind = 'void' THEN",
        "IF NEW.kind = 'charge' THEN spent_sign := -1; END IF;\n        IF NEW.kind = 'void' THEN",
        (f"{SERVICE}::test_a_stale_reservation_is_charged_and_others_are_left",),
    ),
    Mutant(
        "a settlement of another amount",
        RULES,
        "IS DISTINCT FROM (parent.epsilon_nano, parent.delta_atto, parent.rho_nano, parent.mi_nano)",
        "IS DISTINCT FROM (NEW.epsilon_nano, NEW.delta_atto, NEW.rho_nano, NEW.mi_nano)",
        (f"{RULE_TESTS}::test_settlement_of_another_amount",),
    ),
    Mutant(
        "a limit below what is spent",
        RULES,
        "PERFORM privacy_refuse('privacy_limit_above_spent', 'the limit would fall below what is spent');",
        "NULL;",
        (f"{RULE_TESTS}::test_limits_below_what_is_spent",),
    ),
    Mutant(
        "a limit changed without an entry",
        RULES,
        "PERFORM privacy_refuse('privacy_account_by_entry_only', 'limits change by an entry only');",
        "NULL;",
        (f"{RULE_TESTS}::test_limits_changed_by_hand",),
    ),
    Mutant(
        "an output that descends from what was never committed",
        RULES,
        "IF privacy_is_committed(parent) IS NOT TRUE THEN",
        "IF FALSE THEN",
        (f"{RULE_TESTS}::test_post_processing_of_what_is_not_committed",),
    ),
    Mutant(
        "an account of zCDP whose rho does not convert into its epsilon",
        RULES,
        "rho + 2 * sqrt(rho * -ln(delta_rest)) > epsilon_limit",
        "rho + sqrt(rho * -ln(delta_rest)) > epsilon_limit",
        (f"{RULE_TESTS}::test_the_largest_sound_rho_is_granted_and_not_a_nano_more",),
    ),
    Mutant(
        "entries that may be rewritten",
        RULES,
        "CREATE TRIGGER privacy_entry_forever BEFORE UPDATE OR DELETE OR TRUNCATE",
        "CREATE TRIGGER privacy_entry_forever BEFORE DELETE OR TRUNCATE",
        (f"{RULE_TESTS}::test_no_entry_is_rewritten",),
    ),
    Mutant(
        "entries that may be removed where a session poses as a replica",
        RULES,
        "ALTER TABLE privacy_ledgerentry ENABLE ALWAYS TRIGGER privacy_entry_forever;",
        "",
        (f"{RULE_TESTS}::test_nothing_is_removed",),
    ),
    Mutant(
        "a chain that forgets the entry before",
        RULES,
        "NEW.previous_hash := last.hash;",
        "NEW.previous_hash := genesis;",
        (f"{SERVICE}::test_entries_are_chained_by_hashes_python_recomputes",),
    ),
    Mutant(
        "an auditor that does not ask for a unit and a finite price",
        AUDITOR,
        "rules.price(self.account, event)",
        'rules.charge_of(event, adjacency="null")',
        (f"{FORGERIES}::test_all_three_refuse",),
    ),
    Mutant(
        "an auditor that takes forks",
        AUDITOR,
        "continued=parent is not None and self.standing_children[parent] > 1,",
        "continued=False,",
        (f"{FORGERIES}::test_all_three_refuse",),
    ),
    Mutant(
        "an auditor that takes a second opening",
        AUDITOR,
        "opened=event.kind in self.opened,",
        "opened=False,",
        (f"{FORGERIES}::test_all_three_refuse",),
    ),
    Mutant(
        "a continuation from what another one continues",
        SPECIFICATION,
        "    if continued:\n        raise",
        "    if False:\n        raise",
        (f"{FORGERIES}::test_all_three_refuse",),
    ),
    Mutant(
        "secret samples with a delta whose prices do not add up",
        SPECIFICATION,
        "    if any(cost.epsilon != least for _, cost in costs) and",
        "    if False and",
        (
            "tests/db/privacy/ledger/test_populations.py::test_samples_with_a_delta_of_other_epsilons_are_refused_where_people_have_several_records",
            "tests/db/privacy/ledger/test_populations.py::test_the_auditor_of_a_population_refuses_samples_whose_sum_is_unproven",
        ),
    ),
    Mutant(
        "an opening that names an entry before it",
        SPECIFICATION,
        "        if parent is not None:\n            raise",
        "        if False:\n            raise",
        (f"{FORGERIES}::test_what_is_written_past_the_service_is_refused",),
    ),
    Mutant(
        "a unit that the database does not ask for",
        EVENT_RULES,
        "IF privacy_event_unit(event) <> account.unit",
        "IF FALSE AND privacy_event_unit(event) <> account.unit",
        (f"{FORGERIES}::test_all_three_refuse",),
    ),
    Mutant(
        "a price that the database does not ask for",
        EVENT_RULES,
        "    IF entry.epsilon_nano < lowest.epsilon",
        "    IF FALSE AND entry.epsilon_nano < lowest.epsilon",
        (f"{FORGERIES}::test_what_is_written_past_the_service_is_refused",),
    ),
    Mutant(
        "a database that takes forks",
        RULES,
        "PERFORM privacy_refuse('privacy_entry_series_continued_once', 'another release has paid for this step');",
        "NULL;",
        (f"{FORGERIES}::test_all_three_refuse",),
    ),
    Mutant(
        "a database that does not count what a series released",
        RULES,
        "    IF NOT privacy_event_follows(event, parent.event_json::jsonb) THEN",
        "    IF FALSE THEN",
        (f"{FORGERIES}::test_all_three_refuse",),
    ),
]
