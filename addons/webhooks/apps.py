"""Application configuration."""

from django.utils.translation import gettext_lazy as _

from annotation import addons
from annotation.signals import project_erasing, project_event


class WebhooksConfig(addons.AddonConfig):
    name = "addons.webhooks"
    panels = {"releases": "webhooks/_link.html"}
    actions = (
        (_("Added a webhook"), "webhooks:webhooks api:add_webhook"),
        (_("Changed a webhook"), "webhooks:change_webhook api:change_webhook"),
        (_("Replaced the secret of a webhook"), "webhooks:rotate_webhook_secret api:rotate_webhook_secret"),
        (_("Removed a webhook"), "webhooks:remove_webhook api:remove_webhook"),
        (_("Sent a message to a webhook again"), "webhooks:send_webhook_again api:send_webhook_again"),
    )
    numbers = {"webhook_id": _("webhook")}

    def ready(self) -> None:
        from addons.webhooks import services  # noqa: PLC0415 - tables are known by now

        super().ready()
        project_event.connect(services.write_event, dispatch_uid="webhooks.event")
        project_erasing.connect(services.erase_webhooks, dispatch_uid="webhooks.erase")
