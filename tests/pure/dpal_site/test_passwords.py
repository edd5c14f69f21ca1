import pytest
from django.conf import settings
from django.contrib.auth.password_validation import get_default_password_validators, validate_password
from django.core.exceptions import ValidationError


@pytest.mark.parametrize(
    "easy",
    [
        "password12345",
        "!!Dragon2026!!",
        "sunshine-1234",
        "monkeymonkey",
        "qwertyqwerty1",
        "dpal-annotator-2026",
        "LabelManager99",
        "AdminAdmin123!",
        "1234567890",
        "iloveyou",
    ],
)
def test_what_anybody_would_try_is_refused(easy):
    with pytest.raises(ValidationError):
        validate_password(easy)


@pytest.mark.parametrize(
    "fine",
    [
        "correct horse battery",
        "lowercaseonlybutlong",
        "94718205563817204951",
        "ÄÖÜ ß 漢字 🔑 and so on",
        "x" * 20 + " y " * 20 + "z" * 20,
        "password of my grandmother",
        "label the blue whale",
    ],
)
def test_any_kind_of_character_will_do(fine):
    validate_password(fine)


def test_the_site_uses_every_rule():
    assert {type(rule).__name__ for rule in get_default_password_validators()} >= {
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "EasyPasswordValidator",
        "UserAttributeSimilarityValidator",
    }
    assert settings.PASSWORD_RESET_TIMEOUT <= 3600
