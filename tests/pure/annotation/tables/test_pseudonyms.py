from annotation.tables.pseudonyms import PSEUDONYM_BYTES, Pseudonyms


def test_equal_for_one_name_under_one_key():
    people = Pseudonyms(bytes(32))
    assert people.of("Ann") == Pseudonyms(bytes(32)).of("Ann") != people.of("Bo")
    assert len(people.of("Ann")) == PSEUDONYM_BYTES
    assert people.of(None) is None
    assert Pseudonyms(bytes(31) + b"x").of("Ann") != people.of("Ann")
