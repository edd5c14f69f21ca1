"""Application configuration."""

from django.utils.translation import gettext_lazy as _

from annotation import addons
from annotation.signals import project_deleting, project_erasing


class ProlificConfig(addons.AddonConfig):
    name = "addons.prolific"
    panels = {"people": "prolific/_link.html", "crowd_done": "prolific/_done.html"}
    actions = (
        (_("Opened a study on Prolific"), "prolific:studies api:open_study"),
        (_("Connected or disconnected Prolific"), "prolific:connect_platform"),
        (_("Stored a token of Prolific"), "api:connect_platform"),
        (_("Deleted the token of Prolific"), "api:disconnect_platform"),
        (_("Changed a study on Prolific or approved participations"), "prolific:change_study api:change_study"),
        (
            _("Rejected a participation on Prolific or asked to return it"),
            "prolific:judge_submission api:decide_participation",
        ),
        (_("Paid bonuses on Prolific"), "prolific:give_bonuses api:give_bonuses"),
        (_("Settled unclear bonuses on Prolific"), "prolific:settle_bonuses api:settle_bonuses"),
    )

    def ready(self) -> None:
        from addons.prolific.services import accounts  # noqa: PLC0415 - tables are known by now

        super().ready()
        project_deleting.connect(accounts.close_project, dispatch_uid="prolific.close")
        project_erasing.connect(accounts.erase_studies, dispatch_uid="prolific.erase")
