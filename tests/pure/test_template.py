import pytest

from tests.template import APPS, BESIDE, template_name


@pytest.fixture
def root(tmp_path):
    for app in APPS:
        (tmp_path / app / "migrations" / "sql").mkdir(parents=True)
        (tmp_path / app / "migrations" / "0001_tables.py").write_text("tables")
        (tmp_path / app / "migrations" / "sql" / "rules.sql").write_text("rules")
    for name in BESIDE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("libraries")
    return tmp_path


@pytest.mark.parametrize(
    "name", ["learner/migrations/0001_tables.py", "privacy/ledger/migrations/sql/rules.sql", *BESIDE]
)
def test_another_content_has_another_name(root, name):
    before = template_name(root)
    assert template_name(root) == before
    (root / name).write_text("others")
    assert template_name(root) != before


def test_a_further_file_has_another_name_and_code_beside_has_the_same(root):
    before = template_name(root)
    (root / "annotation" / "services.py").write_text("code")
    assert template_name(root) == before
    (root / "annotation" / "migrations" / "0002_more.py").write_text("")
    assert template_name(root) != before


def test_this_version_has_a_name_that_no_run_takes_for_a_leftover():
    assert template_name().startswith("template_")
    assert len(template_name()) < 63
