import re

import pytest
from django.urls import reverse

from annotation.budget import charges
from annotation.data.services import datasets
from annotation.models import Dataset, PoolSource
from annotation.work.services.tokens import Scope
from tests import learning
from tests.clients import browser_of, program_of
from tests.lakes import TEXTS, write_table

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def crowd(owner):
    return learning.open_crowd(owner, privacy_unit="contributor", texts_per_contributor=1)


@pytest.fixture
def web(owner):
    return browser_of(owner)


@pytest.fixture
def table(tmp_path, settings):
    settings.POOL_SOURCES = [tmp_path.as_uri()]
    return write_table(tmp_path / "log")


def data_page(web, project):
    return web.get(reverse("annotation:data", args=[project.slug])).content.decode()


def rows_of(page):
    (said,) = re.findall(r"""(?:<dt>Rows</dt>\s*<dd>|data-label="Rows">)([^<]*)""", page)
    return said.strip()


def send(web, project, **fields):
    sent = {"agreed": charges.token_of(charges.gate_charge(project)), "table-text_column": "said"} | fields
    return web.post(reverse("annotation:register_table", args=[project.slug]), sent)


def test_a_table_is_registered_at_the_price_on_the_button(web, crowd, table):
    fields = {"table-address": table.as_uri(), "table-contributor_column": "who"}
    refused = send(web, crowd, **fields, agreed="0.0;0.0")
    assert refused.status_code == 422
    assert "The price changed" in refused.content.decode()
    assert not Dataset.objects.exists()
    assert send(web, crowd, **fields).url == reverse("annotation:data", args=[crowd.slug])
    dataset = Dataset.objects.get()
    own = reverse("annotation:dataset", args=[crowd.slug, dataset.pk])
    assert (rows_of(data_page(web, crowd)), rows_of(web.get(own).content.decode())) == ("not counted",) * 2
    datasets.import_dataset(job_id=dataset.job_id)
    assert rows_of(data_page(web, crowd)) == str(len(TEXTS))
    page = web.get(own).content.decode()
    assert table.as_uri() in page
    assert PoolSource.objects.get().snapshot in page
    assert f"<dt>Rows</dt><dd>{len(TEXTS)}</dd>" in page
    assert "Bad rows" not in page
    assert "not counted" in data_page(web, crowd)


@pytest.mark.parametrize(
    ("address", "rule"),
    [("file:///etc", "lies outside what the operator allows"), ("ftp://a", "begins with file:// or s3://"), ("", "")],
)
def test_what_is_wrong_stands_beside_the_form_which_is_open(web, crowd, table, address, rule):
    answer = send(web, crowd, **{"table-address": address, "table-contributor_column": "who"})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert rule in page
    assert '<details id="table" open>' in page
    assert not Dataset.objects.exists()


def test_a_program_registers_one_and_may_name_its_most(crowd, owner, table):
    program = program_of(owner, Scope.DATASETS_WRITE)
    price = charges.gate_charge(crowd)
    address = reverse("api:register_table", args=[crowd.slug])
    body = {"address": table.as_uri(), "text_column": "said", "contributor_column": "who", "name": "today"}

    def post(**more):
        return program.post(address, body | more, content_type="application/json")

    assert post(most_epsilon=price.epsilon / 2).status_code == 422
    assert post(address=f"{table.as_uri()}/../x").status_code == 422
    assert not Dataset.objects.exists()
    answer = post(most_epsilon=price.epsilon)
    assert answer.status_code == 202
    told = answer.json()
    assert told["charge"] == {"epsilon": price.epsilon, "delta": price.delta}
    assert told["source"] == {"address": table.as_uri(), "snapshot": "", "snapshot_number": None}
    assert told["name"] == "today"
    assert (told["row_count"], told["bad_row_count"]) == (None, None)
    datasets.import_dataset(job_id=told["job"]["id"])
    (listed,) = program.get(reverse("api:list_datasets", args=[crowd.slug])).json()
    assert (listed["row_count"], listed["bad_row_count"]) == (len(TEXTS), None)
    assert listed["source"]["snapshot"] == PoolSource.objects.get().snapshot != ""


def test_the_page_of_forgetting_says_whose_the_rows_are(web, crowd, table):
    send(web, crowd, **{"table-address": table.as_uri(), "table-contributor_column": "who"})
    page = web.post(reverse("learner:preview_forget", args=[crowd.slug]), {"contributor": "person 1"}).content.decode()
    assert "No stored record names this contributor" in page
    assert "Rewrite the table without this person" in page
