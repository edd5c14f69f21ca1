import pytest

from dpal import tables
from dpal.errors import NotFitting


def test_a_table_has_the_columns_of_its_first_row(tmp_path):
    path = tmp_path / "out.csv"
    with tables.written(str(path), "csv", None) as write:
        write([{"text": "a", "=note": "=1"}, {"text": "b"}])
    assert path.read_text() == "text,'=note\na,'=1\nb,\n"
    with pytest.raises(NotFitting, match="the first has not: other"), tables.written(str(path), "csv", None) as write:
        write([{"text": "a"}, {"text": "b", "other": 1}])
    assert path.read_text().startswith("text,'=note")
