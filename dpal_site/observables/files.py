"""What a file holds that somebody takes away: columns of tables, paths in documents."""

from dpal_site.observables.kinds import LABELLERS, MODELS, REVIEWERS, Basis, Shown, for_managers

FILES = (
    Shown(
        "statement.csv",
        "account sequence kind state mechanism subject purpose descends_from epsilon_nano delta_atto rho_nano mi_nano"
        " event_json",
        MODELS,
        Basis.PUBLIC,
        "entries with their events: the price of an event is a function of its parameters; a limit names who agreed",
    ),
    Shown(
        "statement.csv",
        "created_at settled_at reason actor hash",
        MODELS,
        Basis.BOOKKEEPING,
        "when, who, why, and the chain over all of it; times to the second",
    ),
    Shown(
        "statement.csv",
        "settled_digest",
        MODELS,
        Basis.PAID,
        "a digest of what was released, or of the ids a round asked under a key of the site",
    ),
    Shown(
        "statement.json",
        "format project population accounts accounts.scope accounts.label accounts.unit accounts.adjacency"
        " accounts.filter accounts.limits.* accounts.entries.account_id accounts.entries.sequence accounts.entries.kind"
        " accounts.entries.event_json accounts.entries.epsilon_nano accounts.entries.delta_atto"
        " accounts.entries.rho_nano accounts.entries.mi_nano accounts.entries.parent_id accounts.entries.purpose"
        " accounts.entries.subject accounts.entries.mechanism accounts.entries.mechanism_in_words",
        MODELS,
        Basis.PUBLIC,
        "accounts and entries with their events; a limit names who agreed",
    ),
    Shown(
        "statement.json",
        "made_at accounts.opened_at accounts.chain_head accounts.verdict.* accounts.entries accounts.entries.created_at"
        " accounts.entries.when accounts.entries.actor accounts.entries.reason accounts.entries.hash"
        " accounts.entries.previous_hash accounts.entries.idempotency_key"
        " accounts.entries.epsilon_spent_nano accounts.entries.delta_spent_atto accounts.entries.rho_spent_nano"
        " accounts.entries.mi_spent_nano accounts.entries.epsilon_reserved_nano accounts.entries.delta_reserved_atto"
        " accounts.entries.rho_reserved_nano accounts.entries.mi_reserved_nano accounts.entries.open_reservations"
        " accounts.entries.id accounts.checkpoint signature.*",
        MODELS,
        Basis.BOOKKEEPING,
        "when, who, why, running sums, which attempt it was, the chain, the audit of all of it and signatures over it",
    ),
    Shown("statement.json", "accounts.entries.output_digest", MODELS, Basis.PAID, "as `settled_digest`"),
    Shown(
        "spending.csv purposes.csv",
        "account when by name operations epsilon rho delta percent epsilon_spent epsilon_left epsilon_limit",
        MODELS,
        Basis.BOOKKEEPING,
        "sums over the entries",
    ),
    Shown("releases.csv", "project version test_set examples", MODELS, Basis.PUBLIC, "a public test set"),
    Shown("releases.csv", "accuracy low high", MODELS, Basis.DERIVED, "the released model on public examples"),
    for_managers("labels.csv croissant.json annotators.csv work.csv", "*", "answers, people and work, for managers"),
    Shown(
        "weights.json model.onnx model.skops", "*", MODELS, Basis.PAID, "the released weights, and nothing of a record"
    ),
    Shown("features.json", "*", MODELS, Basis.PUBLIC, "how features are made; paid directions are its paid part"),
    Shown(
        "words.json encoder.npz encoder.md encoder.vocabulary.txt",
        "*",
        MODELS,
        Basis.PUBLIC,
        "public lists and tables that features are made by; no data of the project had a part in them",
    ),
    Shown(
        "samples.json",
        "*",
        MODELS,
        Basis.DERIVED,
        "what the released model says of made-up records, which follow from public parameters",
    ),
    Shown(
        "privacy.json",
        "schema deployment.* covered not_covered questions_shown oracle accounts.adjacency accounts.unit"
        " accounts.filter accounts.protects accounts.flavour accounts.unit_of_privacy"
        " accounts.neighbouring_data_sets accounts.limit_* accounts.guarantee.* accounts.guarantee_when_released.*"
        " accounts.population accounts.records_per_person",
        MODELS,
        Basis.PUBLIC,
        "the guarantee in words and numbers",
    ),
    Shown(
        "privacy.json",
        "answers",
        MODELS,
        Basis.PUBLIC,
        "how answers leave the site, as the project declares it",
    ),
    Shown(
        "privacy.json",
        "issued_at accounts.spent_* accounts.spent_when_released.* accounts.chain_head entries entries.*",
        MODELS,
        Basis.BOOKKEEPING,
        "the entries the version descends from, what was spent, and the day of issue",
    ),
    Shown(
        "card.md",
        "*",
        MODELS,
        Basis.DERIVED,
        "the guarantee, settings and measures on public examples, as in the other files",
    ),
    Shown(
        "manifest.json manifest.sig model.sig",
        "*",
        MODELS,
        Basis.DERIVED,
        "digests and signatures of the other files; of private data under a key of the site, which nobody can try out",
    ),
    Shown(
        "spending.svg purposes.svg releases.svg accuracy.svg reliability.svg confusion.svg",
        "*",
        MODELS,
        Basis.DERIVED,
        "the numbers of the tables beside them, drawn",
    ),
    Shown(
        "question_image.png question_image.webp",
        "*",
        LABELLERS,
        Basis.INSIDE,
        "an image somebody is asked about, in trusted projects alone; by REST as on the page",
    ),
    Shown(
        "told_picture.webp",
        "*",
        LABELLERS,
        Basis.PUBLIC,
        "pictures of the guidelines, which managers choose for all who are asked, and which come from no record",
    ),
    Shown(
        "guideline_picture.webp",
        "*",
        REVIEWERS,
        Basis.PUBLIC,
        "the same pictures, for managers and for those who review by the guidelines",
    ),
)
