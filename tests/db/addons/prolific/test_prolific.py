import pytest

from addons.prolific.interface import PlatformFault, Prolific, StudyDraft, fault_of, platform_target
from annotation.errors import AddressRefused
from tests.prolific_server import TOKEN


@pytest.fixture
def interface(server):
    return Prolific(token=TOKEN)


def draft(**changes) -> StudyDraft:
    values = {
        "name": "Voice queries",
        "internal_name": "dpal-1",
        "description": "Say what each means.",
        "address": "http://site/?a={{%PROLIFIC_PID%}}&b={{%STUDY_ID%}}&c={{%SESSION_ID%}}",
        "completion_code": "CODE",
        "reward_cents": 200,
        "places": 4,
        "minutes": 6,
    }
    return StudyDraft(**(values | changes))


def test_a_study_is_opened_found_moved_and_discarded(interface, server):
    opened = interface.open_draft(draft())
    assert (opened.state, opened.internal_name, opened.places_taken) == ("UNPUBLISHED", "dpal-1", 0)
    assert interface.find_draft("dpal-1") == opened == interface.study(opened.id)
    assert interface.find_draft("dpal-2") is None
    other = interface.open_draft(draft(internal_name="dpal-3"))
    interface.discard(other.id)
    assert interface.move(opened.id, "PUBLISH").state == "ACTIVE"
    assert list(server.studies) == [opened.id]


@pytest.mark.parametrize("field", ["address", "description", "name", "reward_cents"])
def test_a_refused_draft_names_our_field(interface, field):
    wrong = {"address": "http://site/", "description": None, "name": None, "reward_cents": 1}[field]
    with pytest.raises(PlatformFault, match="Prolific refuses it") as refused:
        interface.open_draft(draft(**{field: wrong}))
    named = {"address": "Address of this site", "reward_cents": "Pay of a place"}.get(field, field.capitalize())
    assert refused.value.message.startswith(f"{named}: ")
    assert not refused.value.again


def fault(status, document=b"", *, changes=True, after=0.0):
    return fault_of(status, after, document, changes=changes)


def test_what_may_have_been_done_all_the_same_is_said():
    assert fault(500).unclear
    assert not fault(500, changes=False).unclear
    assert not fault(429, after=7.0).unclear
    assert (fault(429, after=7.0).after, fault(429).again) == (7.0, True)
    for status in (400, 404, 405, 422):
        assert not fault(status).unclear
        assert not fault(status).again
    for status in (401, 403):
        assert fault(status).is_token


@pytest.mark.parametrize(
    "document", [None, [], "x", {"id": 3, "status": "ACTIVE"}, {"id": "a/../b", "status": "ACTIVE"}, {"id": "a"}]
)
def test_an_answer_of_another_shape_is_a_fault(interface, server, document):
    opened = interface.open_draft(draft())
    server.studies[opened.id] = document
    with pytest.raises(PlatformFault, match="cannot be read"):
        interface.study(opened.id)


def test_an_answer_that_never_ends_is_cut(interface, server):
    opened = interface.open_draft(draft())
    server.studies[opened.id]["description"] = "x" * 3_000_000
    with pytest.raises(PlatformFault, match="cannot be read"):
        interface.study(opened.id)


def test_no_id_leads_anywhere_else(interface, server):
    for wrong in ("../users/me", "a/b", "", "a?b", "x" * 65):
        with pytest.raises(PlatformFault):
            interface.study(wrong)
    assert server.asked == []


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://api.prolific.com/api/v1/users/me/", "must begin with https"),
        ("https://elsewhere.example/", "has not allowed this host"),
        ("https://localhost/", "not public"),
    ],
)
def test_only_the_named_host_at_a_public_address_is_asked(settings, url, rule):
    settings.PROLIFIC_URL = "https://localhost" if "localhost" in url else "https://api.prolific.com"
    with pytest.raises(AddressRefused, match=rule):
        platform_target(url)


def test_plain_http_is_for_the_one_port_a_test_names(server, settings):
    assert platform_target(settings.PROLIFIC_URL + "/")[2] is False
    settings.PROLIFIC_LOOPBACK_IN_TESTS = ""
    with pytest.raises(AddressRefused, match="https"):
        platform_target(settings.PROLIFIC_URL + "/")


def test_the_token_is_in_no_representation():
    assert TOKEN not in repr(Prolific(token=TOKEN))
