"""Pseudonyms follow from the site's key, and those of a registered table from a key of that registration alone."""

from annotation.tables.pseudonym_keys import site_pseudonyms, table_key
from annotation.tables.pseudonyms import Pseudonyms


def test_each_registration_has_a_key_that_is_not_the_sites(settings):
    before = site_pseudonyms().of("Ann")
    keys = [table_key(bytes([number] * 32)) for number in (0, 1)]
    assert keys[0] == table_key(bytes(32))
    assert len({before, *(Pseudonyms(key).of("Ann") for key in keys)}) == 3
    assert not any(settings.PSEUDONYM_KEY.encode() in key for key in keys)
    settings.PSEUDONYM_KEY += "x"
    assert site_pseudonyms().of("Ann") != before
    assert table_key(bytes(32)) != keys[0]
