"""Values on the pages about budgets and models, by the templates that write them."""

from dpal_site.observables.kinds import EVERYBODY, MANAGERS, MODELS, Basis, Shown, for_managers

BUDGET = (
    Shown(
        "annotation/budget/budget.html annotation/budget/statement.html annotation/budget/_meter.html"
        " annotation/budget/_spending_table.html learner/dashboard/dashboard.html learner/releases/release.html",
        "project.name project.slug sheets sheets.0.promise sheet.promise sheet.title sheet.small_print open_answers"
        " sheet.account.pk sheet.guarantee.delta_limit sheet.guarantee.epsilon_limit sheet.can_compose",
        MODELS,
        Basis.PUBLIC,
        "accounts and their limits, and whether answers are declared not to be secret",
    ),
    Shown(
        "annotation/budget/budget.html annotation/budget/statement.html annotation/budget/_meter.html"
        " annotation/budget/_spending_table.html learner/dashboard/dashboard.html learner/releases/release.html",
        "sheet.guarantee.delta_spent sheet.guarantee.epsilon_spent sheet.guarantee.epsilon_left"
        " sheet.guarantee.epsilon_reserved sheet.guarantee.chain_head sheet.percent_settled sheet.percent_spent"
        " sheet.is_full"
        " sheet.information sheet.warning sheet.numerical_epsilon sheet.lines sheet.tables guarantee.chain_head"
        " guarantee.sequence heads heads.1 title",
        MODELS,
        Basis.BOOKKEEPING,
        "sums over the entries",
    ),
    Shown(
        "annotation/budget/budget.html",
        "common_limit",
        MODELS,
        Basis.BOOKKEEPING,
        "what all projects of a population have spent together, and its limit",
    ),
    Shown(
        "annotation/budget/populations.html",
        "sheets sheet.population.name sheet.population.slug sheet.guarantee.epsilon_limit"
        " sheet.guarantee.epsilon_spent sheet.shares may_open",
        EVERYBODY,
        Basis.BOOKKEEPING,
        "populations the viewer manages: sums over entries, for nobody else",
    ),
    Shown(
        "annotation/budget/budget.html",
        "sheet.forecasts line",
        MODELS,
        Basis.DERIVED,
        "how far what is left reaches, by prices of parameters",
    ),
    Shown(
        "annotation/budget/budget.html annotation/budget/statement.html annotation/budget/_head.html"
        " annotation/budget/_spending_table.html",
        "line line.account line.account_id line.amount line.ancestor line.delta line.descends_from line.epsilon"
        " line.name line.operations line.percent line.reason line.sequence line.state line.what line.when line.who"
        " table.currency table.heading table.lines table.title",
        MODELS,
        Basis.BOOKKEEPING,
        "entries in words; a price follows from its event's parameters",
    ),
    Shown(
        "annotation/budget/statement.html",
        "form form.changed_data newer older page.has_older page.lines page.number asked_for",
        MODELS,
        Basis.OWN,
        "which lines the viewer asked for",
    ),
    Shown(
        "annotation/budget/statement.html",
        "difference.* verdict.* verdicts",
        MODELS,
        Basis.BOOKKEEPING,
        "the audit: what is computed again from the entries",
    ),
    Shown("annotation/budget/statement.html", "public_key", MODELS, Basis.PUBLIC, "of the site's key"),
    Shown("annotation/budget/budget.html", "may_change", MODELS, Basis.OWN, "whether the viewer manages the project"),
)
RELEASES = (
    Shown(
        "learner/releases/release.html learner/releases.html learner/_releases_table.html"
        " learner/releases/_measures.html learner/_accuracy.html learner/releases/_hero.html"
        " learner/releases/version_zero.html",
        "estimate estimate.accuracy estimate_said",
        MODELS,
        Basis.PUBLIC,
        "a plan's simulation of the settings, on data about nobody",
    ),
    Shown(
        "learner/releases/version_zero.html learner/_version_zero.html learner/releases/_how_well.html"
        " learner/releases/_hero.html learner/releases.html",
        "project.name project.slug accuracies one.constant one.dataset one.described one.examples one.high one.low"
        " one.value one.macro_f1 created_at files name digest version version_zero card.html card.told public_key"
        " api_address",
        MODELS,
        Basis.PUBLIC,
        "version 0: made of words in the settings alone, measured on public examples",
    ),
    Shown(
        "learner/releases.html learner/releases/release.html learner/_releases_table.html learner/releases/_state.html"
        " learner/releases/_measures.html learner/releases/_difference.html learner/_accuracy.html",
        "project.name project.slug rows row release.version version rounds number name value used.questions"
        " used.pool_size used.rate estimator configuration.items environment public_key key_id model_signing_key"
        " api_address request.get_host request.scheme offered help hint difference difference.before.version"
        " difference.configuration difference.environment difference.classes.0"
        " difference.classes.1 difference.used.0 difference.used.1 before now"
        " before.questions before.pool_size before.rate now.questions now.pool_size now.rate one.classes"
        " one.dataset one.dataset.name one.dataset.pk",
        MODELS,
        Basis.PUBLIC,
        "settings, public test sets, questions asked; of a secret sample its law alone",
    ),
    Shown(
        "learner/releases/release.html learner/_releases_table.html learner/releases/_state.html"
        " learner/releases/_difference.html",
        "release.created_at release.released_at release.state release.get_state_display release.retired_reason"
        " release.endorsement release.endorsement.reason lineage account said line.delta line.epsilon"
        " line.what.get_kind_display line.what.sequence line.what.account_id number difference.guarantee",
        MODELS,
        Basis.BOOKKEEPING,
        "what happened to the version, its entries, and the words of the manager who did it; times to the second",
    ),
    Shown(
        "learner/releases/release.html learner/releases/_state.html learner/releases/_measures.html"
        " learner/releases/_difference.html learner/_accuracy.html learner/releases/_how_well.html"
        " learner/releases/_hero.html annotation/projects/_loses.html",
        "accuracies beaten_by card card.html card.told checks found digest files history release.held_back measured"
        " one.constant one.dataset one.described one.examples one.high one.low one.value one.macro_f1"
        " one.loses_to loses_to"
        " one.accuracy.* one.measures"
        " one.measures.* one.rows recall.* row.*"
        " one.by_class precision.* one.as_matrix one.taken_for line.*"
        " difference.accuracies before.value before.low before.high"
        " now.value now.low now.high difference.weights difference.weights.*",
        MODELS,
        Basis.DERIVED,
        "the released weights, alone or on public examples, whether version 0 or a constant does as well there, and"
        " audits of files, ledger and a canary",
    ),
    Shown(
        "learner/releases/release.html learner/releases/_difference.html",
        "channels name others number",
        MODELS,
        Basis.BOOKKEEPING,
        "numbers of the project's versions, and which channels of theirs a manager pointed at this one",
    ),
    Shown(
        "learner/releases/channels.html",
        "channels latest latest.version moves move.* versions number project.name",
        MANAGERS,
        Basis.BOOKKEEPING,
        "what managers did with versions, when to the second, and the words they said about it",
    ),
    Shown(
        "learner/releases/release.html",
        "release.mechanism_audit release.mechanism_audit.charged_epsilon release.mechanism_audit.epsilon_lower_bound",
        MODELS,
        Basis.DERIVED,
        "a canary sent through the mechanism on made-up data",
    ),
    Shown(
        "learner/releases/release.html learner/releases.html learner/releases/_state.html learner/_card.html",
        "may_manage",
        MODELS,
        Basis.OWN,
        "whether the viewer manages the project",
    ),
    for_managers(
        "learner/releases/release.html learner/releases.html learner/releases/_difference.html",
        "release.labels_used waits_for difference.labels.0 difference.labels.1",
        "how many answers were agreed on, and what the project waits for",
    ),
    Shown(
        "learner/releases/_difference.html",
        "difference.labels",
        MODELS,
        Basis.OWN,
        "whether the viewer manages the project; nothing for others",
    ),
)
DASHBOARD = (
    Shown(
        "learner/_more_answers.html",
        "project.slug may_manage more_answers more_answers.sentence more_answers.stop more_answers.may_pause",
        MODELS,
        Basis.DERIVED,
        "versions trained on what was said at random, applied to what passed the gate",
    ),
    Shown(
        "learner/_chart.html learner/_drawing.html learner/chart.svg learner/dashboard/_bars.html"
        " learner/dashboard/dashboard.html learner/releases/release.html learner/releases/_measures.html",
        "chart.* curve.* mark.* tick.* one.name one.place one.dashed place y caption title charts.spending"
        " charts.purposes charts.releases bars name what percent history_chart one.reliability_chart heat",
        MODELS,
        Basis.DERIVED,
        "drawn from the numbers of the table beside it, for whoever reads that table",
    ),
    for_managers(
        "learner/dashboard/dashboard.html",
        "charts.labels",
        "how many answers there are by day, as in the table beside it",
    ),
    Shown(
        "learner/dashboard/dashboard.html learner/dashboard/_table.html",
        "project.slug may_manage caption name open column.heading column.kind"
        " shown.table.columns tables.spending tables.purposes tables.purposes.rows tables.releases"
        " tables.releases.rows",
        MODELS,
        Basis.PUBLIC,
        "which tables there are; their columns stand among the files",
    ),
    Shown(
        "learner/dashboard/_table.html",
        "row value shown.rows shown.more",
        MODELS,
        Basis.BOOKKEEPING,
        "the cells of a table, by its columns",
    ),
    for_managers(
        "learner/dashboard/dashboard.html",
        "agreement counts.* form form.has_choice hidden may_open_beside report.alpha tables.annotators"
        " tables.annotators.rows tables.labels tables.labels.rows",
        "how many answers there are, by whom, and how far they agree",
    ),
    for_managers(
        "learner/dashboard/_work.html",
        "project.slug running works work.*",
        "how long work took and why it failed follow from what it read",
    ),
)
