"""Fields of those routes by which managers run a project and its work, by the schemas of their description."""

from dpal_site.observables.kinds import MANAGERS, Basis, Shown, for_managers

MANAGING = (
    for_managers(
        "ActionOut ActionOut.target",
        "*",
        "who did what in the project, as on the page of the log: managers are inside; no word of a record or an answer",
    ),
    Shown(
        "DescriptionOut",
        "name question lease_seconds",
        MANAGERS,
        Basis.PUBLIC,
        "declared by the project's managers",
    ),
    Shown("KeptOut", "kind days", MANAGERS, Basis.PUBLIC, "periods that managers declared"),
    for_managers(
        "KeptOut", "overdue next_at", "how many things of a kind are over their period, as on the page of retention"
    ),
    for_managers(
        "KindPreviewOut KindChangeOut",
        "*",
        "settings as they would be, and what stands in the way: that there are uploads or questions",
    ),
    Shown(
        "LimitRequestOut LimitOut SecondManagerOut",
        "*",
        MANAGERS,
        Basis.BOOKKEEPING,
        "what managers asked of one another about limits, with their words, and what became of it",
    ),
    for_managers("DeletionOut", "*", "what a deleted project leaves, counted in rows, and how far erasing is"),
    for_managers(
        "WorkOut StartedOut CancelledOut", "*", "how long work took and why it failed follow from what it read"
    ),
    for_managers(
        "ConfigurationOut ConfigurationOut.document ConfigurationOut.fixed ConfigurationChangeOut ChangedSettingOut"
        " ChangedSettingOut.before ChangedSettingOut.after ConfigurationFileIO ConfigurationFileIO.settings"
        " DifferenceOut",
        "*",
        "settings before they are used; those a release was made with stand in it",
    ),
    Shown("ComparisonOut", "*", MANAGERS, Basis.PUBLIC, "projects of the caller's own that ask at random"),
    Shown(
        "ClosedBlockOut TrainingOut",
        "*",
        MANAGERS,
        Basis.PUBLIC,
        "what a manager had begun, and its declared price",
    ),
    Shown(
        "CheckedOut EndorsedOut",
        "version state held_back reason",
        MANAGERS,
        Basis.BOOKKEEPING,
        "what a manager did with a version, and the words said about it",
    ),
    for_managers(
        "WebhookOut WebhookAddedOut DeliveryOut",
        "*",
        "addresses that managers chose, their messages, and a secret in the one answer that adds an address",
    ),
)
