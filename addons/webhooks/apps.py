"""Application configuration."""

from django.utils.translation import gettext_lazy as _

from annotation import addons
from annotation.signals import project_erasing, project_event


class WebhooksConfig(addons.AddonConfig):
    name = "addons.webhooks"
    panels = {"releases": "webhooks/_link.html"}
    sentences = {
        "webhooks:webhooks": _("Added a webhook"),
        "webhooks:change_webhook": _("Changed a webhook"),
        "webhooks:rotate_webhook_secret": _("Replaced the secret of a webhook"),
        "webhooks:remove_webhook": _("Removed a webhook"),
        "webhooks:send_webhook_again": _("Sent a message to a webhook again"),
        "api:add_webhook": _("Added a webhook, by REST"),
        "api:change_webhook": _("Changed a webhook, by REST"),
        "api:rotate_webhook_secret": _("Replaced the secret of a webhook, by REST"),
        "api:remove_webhook": _("Removed a webhook, by REST"),
        "api:send_webhook_again": _("Sent a message to a webhook again, by REST"),
    }
    numbers = {"webhook_id": _("webhook")}

    def ready(self) -> None:
        from addons.webhooks import services  # noqa: PLC0415 - tables are known by now

        super().ready()
        project_event.connect(services.write_event, dispatch_uid="webhooks.event")
        project_erasing.connect(services.erase_webhooks, dispatch_uid="webhooks.erase")
