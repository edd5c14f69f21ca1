"""What is read beside pages and answers: headers, messages to programs and people, metrics, lines of logs."""

from dpal_site.observables.kinds import (
    EVERYBODY,
    LABELLERS,
    MANAGERS,
    MODELS,
    OPERATORS,
    Basis,
    Reader,
    Shown,
    for_managers,
    for_operators,
)

HEADERS = (
    Shown(
        "headers",
        "Content-Type Content-Language Vary Cache-Control Expires X-Frame-Options X-Content-Type-Options"
        " Referrer-Policy Cross-Origin-Opener-Policy Content-Security-Policy Permissions-Policy"
        " Strict-Transport-Security Accept-Ranges Allow WWW-Authenticate Last-Modified HX-*",
        EVERYBODY,
        Basis.PUBLIC,
        "rules of the site, the same for every project",
    ),
    Shown(
        "headers",
        "X-Request-ID Set-Cookie Location Retry-After Idempotency-Replayed Content-Range",
        EVERYBODY,
        Basis.OWN,
        "of the viewer's own requests; a pause before the next try follows the site's load",
    ),
    Shown(
        "headers",
        "Content-Length Content-Disposition Link Warning",
        EVERYBODY,
        Basis.DERIVED,
        "of the body beside it: its length, its name, whether there is a next page, whether a version is retired",
    ),
    Shown(
        "headers",
        "X-Repo-Commit X-HF-Warning X-Error-Code X-Error-Message",
        EVERYBODY,
        Basis.DERIVED,
        "of the same files as a hub of models tells them: a digest over their digests, retired or not, what is refused",
    ),
    Shown("headers", "ETag", EVERYBODY, Basis.DERIVED, "the SHA-256 of a file that is itself released"),
)
WEBHOOKS = (
    Shown(
        "webhook",
        "schema event project version round account limit_epsilon channel rolled_back reason",
        MODELS,
        Basis.PUBLIC,
        "that a version or a round is there, a version taken back or in a channel and why, most of a limit spent: what"
        " REST tells an engineer",
    ),
    for_managers(
        "webhook",
        "dataset state settings",
        "that an upload was read or refused or went through the gate, and the names of settings that changed: to the"
        " address a manager chose",
    ),
    for_managers(
        "webhook",
        "question",
        "the number of a question that an annotator reported or commented on, to the address a manager chose; never"
        " where the choice of questions is secret",
    ),
    for_managers(
        "webhook",
        "step work job change membership role",
        "that a manager must decide, that work failed and not why or is done, that somebody has a role or lost it, by"
        " its number; where the choice of questions is secret, no decision, no training, no comparison of answers or"
        " file of labels and no pause",
    ),
    for_managers(
        "webhook",
        "guidelines study request kind forgetting",
        "numbers of a version of the guidelines, a study, a request to a second manager and a request to forget"
        " somebody, with their states: to the address a manager chose",
    ),
)
MAILS = (
    Shown(
        "mail",
        "account/email/*",
        EVERYBODY,
        Basis.OWN,
        "the sign-in library's letters about the receiver's own account",
    ),
    Shown(
        "annotation/people/letter.html",
        "letter letter.items item.* letter.subject letter.small_print letter.choose language",
        EVERYBODY,
        Basis.PUBLIC,
        "the words of one of the letters below, in the reader's language",
    ),
    Shown(
        "mail",
        "invited",
        EVERYBODY,
        Basis.PUBLIC,
        "who invites into which project, in which role: to the address a manager named, as the invitation's page says",
    ),
    Shown(
        "mail",
        "release budget",
        MODELS,
        Basis.PUBLIC,
        "that a version is released, that four fifths of a limit are spent: what REST tells an engineer",
    ),
    Shown(
        "mail",
        "questions returned",
        LABELLERS,
        Basis.OWN,
        "that questions of a visible round wait, that a manager asks to look at an answer again: no number, nothing of"
        " a record or an answer, and nothing where ids and times of questions are secret, for a letter leaves the site",
    ),
    Shown(
        "mail",
        "remark",
        LABELLERS | MANAGERS,
        Basis.OWN,
        "that somebody writes to them about a question, once an hour at most: not who, not which, not what, and nothing"
        " where ids and times of questions are secret",
    ),
    Shown(
        "mail",
        "review",
        frozenset({Reader.REVIEWER}),
        Basis.OWN,
        "that answers wait for their decision, once a day at most: no number, nothing of a record or an answer, and"
        " nothing where ids and times of questions are secret",
    ),
    Shown(
        "mail",
        "export",
        MANAGERS,
        Basis.OWN,
        "that a file of labels the receiver asked for is there, behind the site's sign-in; nothing where ids and times"
        " of questions are secret",
    ),
    for_managers(
        "mail",
        "waiting",
        "that the project stands still until a manager decides; nothing where ids and times of questions are secret",
    ),
)
LOGS = (
    for_operators(
        "log",
        "event level timestamp logger request_id exception method route status milliseconds user_id token_id security"
        " network account factor asked reason task task_id",
        "who asked which page when, never what was in a row; whoever runs the site is inside",
    ),
)
METRICS = (
    for_operators(
        "metrics",
        "dpal_queue_depth dpal_leases dpal_lease_age_seconds",
        "numbers of questions, not of projects that hide what they ask: such numbers end on dashboards",
    ),
    for_operators(
        "metrics",
        "dpal_broker_messages dpal_work dpal_work_age_seconds dpal_work_seconds dpal_heartbeat_age_seconds",
        "how much work waits and how long it took, over all projects",
    ),
    Shown(
        "metrics",
        "dpal_budget_epsilon_limit dpal_budget_epsilon_left dpal_budget_delta_left dpal_budget_open_reservations",
        OPERATORS,
        Basis.BOOKKEEPING,
        "sums over the entries, as engineers read them",
    ),
    for_operators("metrics", "django_* python_* process_*", "requests by page, the processes"),
)
OTHER = (
    Shown(
        "api.prolific.com",
        "name description address completion_code places reward minutes message category amounts",
        EVERYBODY,
        Basis.PUBLIC,
        "what a manager writes for participants of a study, and decides about them, told to the platform; nothing of a"
        " record, a question or an answer; that a submission is approved follows from its being complete",
    ),
    Shown("/healthz /readyz", "*", EVERYBODY, Basis.PUBLIC, "whether the site's parts answer; no project is named"),
    for_managers("project.log", "*", "who did what in a project"),
)
