import pytest

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.every_change
def test_a_person_signs_in(page, live_server, django_user_model):
    django_user_model.objects.create_user("ann", password="a long password")
    page.goto(f"{live_server.url}/login/")
    page.locator("input[name=login]").fill("ann")
    page.locator("input[name=password]").fill("a long password")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/login/" not in url)
    assert "sessionid" in {cookie["name"] for cookie in page.context.cookies()}


@pytest.mark.every_change
@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("<script>throw new Error('boo')</script>", "script error: boo"),
        ("<img src='https://example.org/x.png'>", "asked another host for https://example.org/x.png"),
    ],
)
def test_the_page_fixture_notices(page, page_faults, content, fault):
    page.set_content(content)
    assert page_faults == [fault]
    page_faults.clear()


def test_the_page_fixture_notices_a_breach_of_the_policy(page, page_faults, live_server):
    page.goto(f"{live_server.url}/login/")
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        page.evaluate("document.head.appendChild(document.createElement('style')).textContent = 'p {color: red}'")
    assert page_faults
    assert all("Content Security Policy" in fault for fault in page_faults)
    page_faults.clear()
