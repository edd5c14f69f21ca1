"""Application configuration."""

from django.utils.translation import gettext_lazy as _

from annotation import addons
from annotation.signals import project_deleting, project_erasing


class ProlificConfig(addons.AddonConfig):
    name = "addons.prolific"
    panels = {"people": "prolific/_link.html", "crowd_done": "prolific/_done.html"}
    sentences = {
        "prolific:studies": _("Opened a study on Prolific"),
        "prolific:connect_platform": _("Connected the project to Prolific, or took it back"),
        "prolific:change_study": _("Moved a study on Prolific on, or approved its participations"),
        "prolific:judge_submission": _("Rejected a participation on Prolific, or asked for its return"),
        "prolific:give_bonuses": _("Gave bonuses on Prolific"),
        "prolific:settle_bonuses": _("Said whether bonuses on Prolific were paid"),
        "api:connect_platform": _("Stored a token of Prolific, by REST"),
        "api:disconnect_platform": _("Had the token of Prolific forgotten, by REST"),
        "api:open_study": _("Opened a study on Prolific, by REST"),
        "api:change_study": _("Moved a study on Prolific on, or approved its participations, by REST"),
        "api:decide_participation": _("Decided about a participation on Prolific, by REST"),
        "api:give_bonuses": _("Gave bonuses on Prolific, by REST"),
        "api:settle_bonuses": _("Said whether unclear bonuses on Prolific came, by REST"),
    }

    def ready(self) -> None:
        from addons.prolific.services import accounts  # noqa: PLC0415 - tables are known by now

        super().ready()
        project_deleting.connect(accounts.close_project, dispatch_uid="prolific.close")
        project_erasing.connect(accounts.erase_studies, dispatch_uid="prolific.erase")
