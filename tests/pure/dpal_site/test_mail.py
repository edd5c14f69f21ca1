from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from dpal_site.environment import mail_settings

FOLDER = Path("/nowhere")


def test_without_an_address_mail_becomes_files():
    settings = mail_settings("", folder=FOLDER)
    assert settings["EMAIL_BACKEND"].endswith("filebased.EmailBackend")
    assert settings["EMAIL_FILE_PATH"] == FOLDER


def test_smtp_with_everything():
    settings = mail_settings("smtp://me%40x.org:p%2Fw@mail.x.org/?from=dpal%40x.org", folder=FOLDER)
    assert (settings["EMAIL_HOST"], settings["EMAIL_PORT"]) == ("mail.x.org", 587)
    assert (settings["EMAIL_HOST_USER"], settings["EMAIL_HOST_PASSWORD"]) == ("me@x.org", "p/w")
    assert settings["DEFAULT_FROM_EMAIL"] == "dpal@x.org"
    assert (settings["EMAIL_USE_TLS"], settings["EMAIL_USE_SSL"]) == (True, False)


def test_tls_from_the_first_byte_or_not_at_all():
    assert mail_settings("smtps://mail.x.org", folder=FOLDER)["EMAIL_USE_SSL"] is True
    assert mail_settings("smtp://localhost:2525/?tls=0", folder=FOLDER)["EMAIL_USE_TLS"] is False


@pytest.mark.parametrize("url", ["http://mail.x.org", "smtp://", "mail.x.org"])
def test_anything_else_is_refused(url):
    with pytest.raises(ImproperlyConfigured):
        mail_settings(url, folder=FOLDER)
