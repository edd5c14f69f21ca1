import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tests.factories import make_user

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough password"
FIELDS = {"username": "ada", "email": "", "password1": PASSWORD, "password2": PASSWORD}


def test_the_login_page_leads_to_it_and_whoever_makes_it_is_logged_in() -> None:
    client, address = Client(), reverse("first_account")
    assert address in client.get(reverse("login")).content.decode()
    response = client.post(address, FIELDS)
    assert (response.status_code, response["Location"]) == (302, reverse("annotation:projects"))
    made = User.objects.get()
    assert (made.username, made.is_staff, made.is_superuser) == ("ada", True, True)
    assert made.has_perm("annotation.add_project")
    assert "New project" in client.get(response["Location"]).content.decode()


@pytest.mark.parametrize("method", ["get", "post"])
def test_it_is_gone_once_somebody_has_an_account(method: str) -> None:
    make_user("somebody")
    client = Client()
    assert getattr(client, method)(reverse("first_account"), FIELDS).status_code == 404
    assert reverse("first_account") not in client.get(reverse("login")).content.decode()
    assert User.objects.count() == 1


@pytest.mark.parametrize("elsewhere", [{"REMOTE_ADDR": "192.0.2.1"}, {"HTTP_X_FORWARDED_FOR": "192.0.2.1"}])
def test_it_is_for_nobody_elsewhere_nor_behind_a_proxy(elsewhere: dict[str, str]) -> None:
    client = Client(**elsewhere)
    assert client.get(reverse("first_account")).status_code == 404
    assert client.post(reverse("first_account"), FIELDS).status_code == 404
    assert not User.objects.exists()


def test_a_weak_password_makes_none() -> None:
    response = Client().post(reverse("first_account"), FIELDS | {"password1": "ada", "password2": "ada"})
    assert response.status_code == 422
    assert not User.objects.exists()
