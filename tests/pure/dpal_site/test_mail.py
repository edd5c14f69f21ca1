from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from dpal_site.environment import mail_settings

FOLDER = Path("/nowhere")


def test_smtp_with_everything():
    settings = mail_settings("smtp://me%40x.org:p%2Fw@mail.x.org/?from=dpal%40x.org", folder=FOLDER)
    assert (settings["EMAIL_HOST"], settings["EMAIL_PORT"]) == ("mail.x.org", 587)
    assert (settings["EMAIL_HOST_USER"], settings["EMAIL_HOST_PASSWORD"]) == ("me@x.org", "p/w")
    assert settings["DEFAULT_FROM_EMAIL"] == "dpal@x.org"
    assert (settings["EMAIL_USE_TLS"], settings["EMAIL_USE_SSL"]) == (True, False)


@pytest.mark.parametrize("url", ["http://mail.x.org", "smtp://", "mail.x.org"])
def test_anything_else_is_refused(url):
    with pytest.raises(ImproperlyConfigured):
        mail_settings(url, folder=FOLDER)
