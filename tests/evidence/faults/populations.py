"""Faults in what projects share: a person who loses more than is charged, one manager who decides alone."""

from tests.evidence.planting import Mutant

SHARED = "tests/db/privacy/ledger/test_populations.py"
PEOPLE = "tests/db/annotation/budget/test_population_services.py"
DECLARED = "tests/db/annotation/data/test_declared.py"
RULES = "privacy/ledger/migrations/sql/rules.sql"
TWO_MANAGERS = "annotation/migrations/sql/populations.sql"
COUNTED_IN_BOTH = f"{SHARED}::test_a_reservation_counts_in_both_and_a_void_gives_both_back"

POPULATIONS = [
    Mutant(
        "a population that is not charged for what its project reserves",
        "privacy/ledger/sharing.py",
        "        _repeat(quota, entry, event)\n\n\ndef repeat_settlement",
        "        pass\n\n\ndef repeat_settlement",
        (COUNTED_IN_BOTH,),
    ),
    Mutant(
        "a population whose database does not miss what it was not charged",
        RULES,
        "        PERFORM privacy_check_repeated(NEW, population);",
        "        NULL;",
        (f"{SHARED}::test_a_project_cannot_pay_alone", f"{SHARED}::test_a_project_cannot_settle_alone"),
    ),
    Mutant(
        "a person charged for one record though several were declared",
        "privacy/ledger/selectors.py",
        "            records_per_person=quota.records_per_person,\n            scope=",
        "            records_per_person=1,\n            scope=",
        (COUNTED_IN_BOTH, f"{SHARED}::test_rhos_are_summed_by_the_square_of_the_group"),
    ),
    Mutant(
        "another declared number that the database takes",
        RULES,
        "IS DISTINCT FROM ('people', terms.unit::text, quota.records_per_person::bigint)",
        "IS DISTINCT FROM ('people', terms.unit::text, (event ->> 'records_per_person')::bigint)",
        (f"{SHARED}::test_the_declared_number_is_the_one_that_is_charged",),
    ),
    Mutant(
        "a group that loses its rho once for each record",
        "privacy/accounting/cost.py",
        "return Cost(_product(self.epsilon, size), 0.0, _product(self.rho, size * size), information)",
        "return Cost(_product(self.epsilon, size), 0.0, _product(self.rho, size), information)",
        (f"{SHARED}::test_rhos_are_summed_by_the_square_of_the_group",),
    ),
    Mutant(
        "a group whose deltas only add up",
        "privacy/accounting/cost.py",
        "growth = size if self.epsilon == 0 else",
        "growth = size if self.epsilon >= 0 else",
        (COUNTED_IN_BOTH,),
    ),
    Mutant(
        "a price below a person's loss that the database takes",
        RULES,
        "        PERFORM privacy_refuse('privacy_population_price', 'a person loses more than is charged for it');",
        "        NULL;",
        (f"{SHARED}::test_a_population_is_not_charged_less",),
    ),
    Mutant(
        "a quota that is not checked",
        "privacy/ledger/migrations/sql/rules.sql",
        "        OR (account.filter = 'pure' AND NEW.epsilon_spent_nano > account.epsilon_limit_nano)",
        "        OR (account.filter = 'pure' AND NEW.epsilon_spent_nano > account.epsilon_limit_nano\n"
        "            AND account.parent_id IS NULL)",
        (f"{SHARED}::test_a_project_cannot_overspend_its_quota_though_the_population_could",),
    ),
    Mutant(
        "a common limit that is not checked",
        "privacy/ledger/migrations/sql/rules.sql",
        "        OR (account.filter = 'pure' AND NEW.epsilon_spent_nano > account.epsilon_limit_nano)",
        "        OR (account.filter = 'pure' AND NEW.epsilon_spent_nano > account.epsilon_limit_nano\n"
        "            AND account.key_fingerprint = '')",
        (
            f"{SHARED}::test_what_the_population_cannot_pay_is_refused_though_the_project_could",
            f"{SHARED}::test_the_database_refuses_overspend_of_the_population",
        ),
    ),
    Mutant(
        "a project that joins and leaves its past behind",
        "privacy/ledger/populations.py",
        "            sharing.repeat_past(account)\n",
        "",
        (
            f"{SHARED}::test_what_was_spent_before_joining_is_charged_and_voids_are_not",
            f"{SHARED}::test_a_past_the_population_cannot_pay_leaves_everything_as_it_was",
        ),
    ),
    Mutant(
        "a past left behind that the database does not miss",
        RULES,
        "PERFORM privacy_refuse('privacy_quota_past', 'what the account has spent is not charged to the population');",
        "NULL;",
        (f"{SHARED}::test_a_past_that_is_not_charged",),
    ),
    Mutant(
        "a conversion from sums of rho to sums of epsilon",
        "privacy/ledger/populations.py",
        "    if account.filter == Filter.ZCDP and common.filter == Filter.PURE:",
        "    if account.filter == Filter.ZCDP and common.filter == Filter.ZCDP and common.filter == Filter.PURE:",
        (f"{SHARED}::test_what_has_no_conversion_is_refused_by_its_rule",),
    ),
    Mutant(
        "people under two keys of pseudonyms taken for the same",
        "privacy/ledger/populations.py",
        "    if population.key_fingerprint == key_fingerprint():",
        "    if population.key_fingerprint:",
        (f"{SHARED}::test_another_key_of_pseudonyms_is_another_population",),
    ),
    Mutant(
        "one manager who raises a common limit alone",
        "annotation/people/services/limits.py",
        "    higher = epsilon > account.epsilon_limit_nano or delta > account.delta_limit_atto",
        "    higher = delta > account.delta_limit_atto",
        (f"{PEOPLE}::test_a_higher_limit_takes_two_managers",),
    ),
    Mutant(
        "one manager who approves what she asked for",
        "annotation/people/services/limits.py",
        "        if found.requested_by_id == actor.pk:\n            raise",
        "        if found.requested_by_id == -1:\n            raise",
        (f"{PEOPLE}::test_a_higher_limit_takes_two_managers",),
    ),
    Mutant(
        "a common limit that the database lets one manager raise",
        "annotation/migrations/sql/second_manager.sql",
        "    WHERE id = NEW.account_id AND (epsilon > epsilon_limit_nano OR delta > delta_limit_atto)",
        "    WHERE id = NEW.account_id AND delta > delta_limit_atto",
        (f"{PEOPLE}::test_a_limit_raised_past_the_second_manager",),
    ),
    Mutant(
        "a manager whom the database lets one manager make",
        TWO_MANAGERS,
        "WHERE account_id = NEW.account_id) < 2 THEN",
        "WHERE account_id = NEW.account_id) < 3 THEN",
        (f"{PEOPLE}::test_a_manager_made_alone",),
    ),
    Mutant(
        "later uploads that nobody holds against the declared number",
        "annotation/data/services/datasets.py",
        "        refuse_more_than_declared(dataset)\n",
        "",
        (f"{DECLARED}::test_a_later_upload_is_held_against_the_declared_number",),
    ),
    Mutant(
        "one record more of a person than was declared",
        TWO_MANAGERS,
        "GROUP BY record.contributor HAVING count(*) > declared",
        "GROUP BY record.contributor HAVING count(*) > declared + 1",
        (
            f"{DECLARED}::test_the_database_refuses_an_upload_that_becomes_ready",
            f"{DECLARED}::test_the_database_refuses_a_number_below_what_stands",
        ),
    ),
    Mutant(
        "somebody forgotten who may come again",
        "annotation/data/services/datasets.py",
        "    elif _names_somebody_forgotten(dataset):",
        "    elif False and _names_somebody_forgotten(dataset):",
        (f"{DECLARED}::test_who_was_forgotten_does_not_come_again",),
    ),
    Mutant(
        "a data subject who is not told of projects that have forgotten them",
        "annotation/data/who_lost_what.py",
        "        if project.pk not in by_project and not forgotten:",
        "        if project.pk not in by_project:",
        (f"{PEOPLE}::test_who_was_forgotten_stays_covered",),
    ),
]
