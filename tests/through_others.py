"""Modules of the product that no test imports and none is named after: which test goes through them, and why so."""

# Parts of one thing, tested through the module that uses them; a new module gets a test of its own.
TESTED_THROUGH_OTHERS: dict[tuple[str, str], tuple[str, ...]] = {
    ("tests/web/dpal_site/test_observables.py", "every page and route asks it who somebody is in a project"): (
        "learner/access.py",
    ),
    ("tests/pure/annotation/choices/test_account_kind.py", "what presets and rules of a choice are made of"): (
        "annotation/choices/preset.py",
    ),
    (
        "tests/web/annotation/projects/test_settings.py",
        "the fields of a choice, as the page of settings shows and takes them",
    ): ("annotation/choices/form_fields.py",),
    (
        "tests/web/annotation/choices/test_new_choice.py",
        "a choice of a test's own is found by it, and what it refuses is told",
    ): ("annotation/choices/refusals.py",),
    (
        "tests/pure/annotation/parsers/test_label_studio.py",
        "a format among others, read by one function that tests call for each",
    ): ("annotation/parsers/parquet.py",),
    ("tests/web/annotation/projects/test_configuration.py", "sentences of a history, read where settings change"): (
        "annotation/log/history.py",
    ),
    ("tests/web/annotation/people/test_members_api.py", "what a page and a route show of people and groups"): (
        "annotation/people/group_presenters.py",
        "annotation/people/selectors.py",
    ),
    ("tests/web/dpal_site/test_admin.py", "how a person is called in lists, and what each app shows to staff"): (
        "annotation/admin.py",
        "annotation/people/identity.py",
        "learner/admin.py",
        "privacy/admin.py",
    ),
    ("tests/db/learner/answers/test_open_answers.py", "a declaration that the learner reads, and pays nothing for"): (
        "annotation/choices/open_answers.py",
    ),
    ("tests/db/annotation/statement/test_limits.py", "the two of a change that takes two"): (
        "annotation/people/services/second_manager.py",
        "annotation/signals.py",
    ),
    ("tests/web/annotation/projects/test_wizard.py", "sentences of the wizard about who is protected from whom"): (),
    ("tests/web/annotation/guidelines/test_pictures.py", "guidelines as pages show them, with and without pictures"): (
        "annotation/guidelines/presenters.py",
    ),
    ("tests/db/annotation/exports/test_label_files.py", "how a file of labels goes out, by page and by route"): (
        "annotation/exports/downloads.py",
    ),
    ("tests/web/annotation/questions/test_answering_api.py", "an annotator's own answers, by page and by route"): (
        "annotation/questions/own_answers.py",
    ),
    ("tests/web/annotation/reports/test_api.py", "questions that people flagged, by page and by route"): (
        "annotation/reports/selectors/waiting.py",
    ),
    ("tests/web/annotation/data/test_gate_api.py", "a request sent twice, and answers every route has"): (
        "annotation/rest/idempotency.py",
        "annotation/rest/responses.py",
        "annotation/rest/routing.py",
        "annotation/work/services/idempotency.py",
    ),
    ("tests/web/annotation/gates/test_api.py", "work that a route starts, as every such route describes it"): (
        "annotation/rest/jobs.py",
    ),
    ("tests/web/annotation/quality/test_api.py", "a list in pages, as every route gives one"): (
        "annotation/rest/pagination.py",
    ),
    ("tests/web/annotation/statement/test_lines.py", "how a statement's file goes out, by page and by route"): (
        "annotation/statement/downloads.py",
    ),
    ("tests/db/annotation/people/test_groups.py", "leases that end with whoever leaves"): (
        "annotation/work/services/leases.py",
    ),
    ("tests/web/dpal_site/test_openapi.py", "who asks, with which scope and of which project, at every route"): (),
    ("tests/pure/dpal_site/demo/test_plans.py", "images of the demonstration's plan"): ("dpal_site/demo/digits.py",),
    ("tests/journeys/test_hub.py", "the library of a hub, pointed at a site as its users point it"): (
        "dpal_site/hub.py",
    ),
    ("tests/journeys/test_demo.py", "parts of the demonstration, which is run as a whole"): (
        "dpal_site/preparation.py",
    ),
    (
        "tests/faults/dpal_site/embedded/test_processes.py",
        "the first lines of a child process, which tests start and kill",
    ): ("dpal_site/embedded/launch.py",),
    (
        "tests/web/dpal_site/test_fuzz_pages.py",
        "pages for what goes wrong, for health and for preferences, asked by address",
    ): (
        "dpal_site/failures.py",
        "dpal_site/health.py",
        "dpal_site/preferences.py",
    ),
    ("tests/web/dpal_site/test_operations_api.py", "work that takes long, as the operations page and route list it"): (
        "dpal_site/monitoring/long_work.py",
    ),
    ("tests/web/dpal_site/test_observables.py", "rows of a table that is compared with what pages show"): (
        "dpal_site/observables/model_pages.py",
    ),
    ("tests/web/annotation/test_wording.py", "the document of an error, as every route gives it"): (
        "dpal_site/problems.py",
    ),
    ("tests/db/learner/rounds/test_services.py", "what is left of a deleted project, by page and by route"): (
        "learner/rounds/selectors.py",
    ),
    ("tests/web/learner/releases/test_pages.py", "accuracy on test sets, as pages show it beside what costs nothing"): (
        "learner/releases/evaluations.py",
    ),
    ("tests/web/learner/evidence/test_views.py", "what was audited, as the page and the route tell it"): (
        "learner/evidence/report.py",
    ),
    ("tests/pure/learner/features/test_static_encoder.py", "lists of words that encoders read"): (
        "learner/features/word_lists.py",
    ),
    ("tests/db/learner/rounds/test_secret_blocks.py", "what a round asks before it takes memory"): (
        "learner/pools/features.py",
    ),
    (
        "tests/pure/learner/releases/artifacts/test_files.py",
        "one file of a release each, read back from the folder that is written",
    ): (
        "learner/releases/artifacts/licences.py",
        "learner/releases/artifacts/onnx_export.py",
        "learner/releases/artifacts/pipeline_export.py",
        "learner/releases/artifacts/safetensors_export.py",
        "learner/releases/cards/privacy_document.py",
    ),
    ("tests/pure/learner/papers/test_small_versions.py", "a paper's experiments, run small from end to end"): (
        "learner/papers/chaudhuri2008.py",
        "learner/papers/chaudhuri2008_curves.py",
        "learner/papers/ghassemi2016.py",
        "learner/papers/ghassemi_screens.py",
        "learner/papers/plots.py",
    ),
    ("tests/pure/learner/papers/test_feyisetan2019.py", "sketches of the paper's gate"): (
        "learner/papers/feyisetan2019_sketches.py",
    ),
    ("tests/pure/learner/papers/test_rane2019.py", "parts of the paper's loop"): (
        "learner/papers/rane2019_coins.py",
        "learner/papers/rane2019_version_space.py",
    ),
    (
        "tests/db/learner/rounds/test_loop.py",
        "kinds of rounds, entered through the one function that runs any round",
    ): ("learner/rounds/services/selection.py",),
    (
        "tests/db/learner/trainings/test_fitting.py",
        "kinds of trainings, entered through the one function that runs any",
    ): (
        "learner/rounds/services/streams.py",
        "learner/rounds/services/training.py",
    ),
    (
        "tests/pure/privacy/accounting/test_events.py",
        "kinds of events, which tests make from one catalogue, and the checks of their numbers",
    ): (
        "privacy/accounting/checks.py",
        "privacy/accounting/answers.py",
        "privacy/accounting/selection.py",
        "privacy/accounting/training.py",
        "privacy/accounting/answers.py",
        "privacy/accounting/mutual_information.py",
        "privacy/accounting/event.py",
        "privacy/accounting/training.py",
    ),
    ("tests/db/privacy/services/test_audit.py", "marks and accounts that the audit of a ledger reads"): (
        "privacy/accounting/composition.py",
        "privacy/audit/account.py",
        "privacy/services/marks.py",
    ),
    (
        "tests/web/annotation/statement/test_statement_audit.py",
        "what the audit of a statement prints, called as somebody elsewhere calls it",
    ): ("privacy/audit/report.py",),
    ("tests/web/learner/test_outside.py", "what the ledger keeps of the ids that a round asked about"): (
        "privacy/services/digests.py",
    ),
    ("tests/pure/privacy/test_evidence.py", "names of types, which every estimator and audit passes on"): (
        "privacy/arrays.py",
    ),
    ("tests/pure/privacy/engines/test_process.py", "capping, called by each engine"): ("privacy/gate/capping.py",),
    ("tests/web/dpal_site/test_transport.py", "what stands around every request, of which others are made"): (
        "dpal_site/around.py",
    ),
}
