"""A pseudonym is one for each name and key, and none for nobody."""

from annotation.data.readers.cells import PSEUDONYM_BYTES, Pseudonyms
from annotation.data.services.pseudonyms import site_pseudonyms, table_key


def test_equal_for_one_name_under_one_key():
    people = Pseudonyms(bytes(32))
    assert people.of("Ann") == Pseudonyms(bytes(32)).of("Ann") != people.of("Bo")
    assert len(people.of("Ann")) == PSEUDONYM_BYTES
    assert people.of(None) is None
    assert Pseudonyms(bytes(31) + b"x").of("Ann") != people.of("Ann")


def test_each_registration_has_a_key_that_is_not_the_sites(settings):
    before = site_pseudonyms().of("Ann")
    keys = [table_key(bytes([number] * 32)) for number in (0, 1)]
    assert keys[0] == table_key(bytes(32))
    assert len({before, *(Pseudonyms(key).of("Ann") for key in keys)}) == 3
    assert not any(settings.PSEUDONYM_KEY.encode() in key for key in keys)
    settings.PSEUDONYM_KEY += "x"
    assert site_pseudonyms().of("Ann") != before
    assert table_key(bytes(32)) != keys[0]
