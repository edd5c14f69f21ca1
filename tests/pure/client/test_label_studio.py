import socket
import threading
from contextlib import contextmanager

import pytest
import requests

from dpal.errors import NotFitting
from dpal.label_studio import control_of, serve
from dpal.model import Model
from tests.pure.client.features.test_featurizers import FEATURIZERS, write

CONFIG = """<View><Text name="said" value="$body"/>
<Choices name="kind" toName="said"><Choice value="a"/><Choice value="b"/></Choices></View>"""
TEXTS = ["play jazz", "", "What's THIS?"]


@contextmanager
def serving(model):
    with serve(model, host="127.0.0.1", port=0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def model(tmp_path):
    return Model("intents", 3, write(tmp_path / "release", FEATURIZERS["hashed L2"]))


def test_tasks_get_the_predictions_of_the_release(model, capsys):
    tasks = [{"id": place, "data": {"body": text}} for place, text in enumerate(TEXTS)] + [{"id": 9, "data": {}}]
    with serving(model) as address:
        assert requests.get(f"{address}/health", timeout=9).json()["status"] == "UP"
        setup = requests.post(f"{address}/setup", json={"project": "1", "schema": CONFIG}, timeout=9)
        assert setup.json() == {"model_version": "intents-3"}
        sent = {"tasks": tasks, "label_config": CONFIG, "project": "1"}
        told = requests.post(f"{address}/predict", json=sent, timeout=9).json()
        assert requests.get(f"{address}/versions", timeout=9).json() == {"versions": ["intents-3"]}
        assert requests.post(f"{address}/webhook", json={"action": "ANNOTATION_CREATED"}, timeout=9).status_code == 200
        assert requests.get(f"{address}/etc/passwd", timeout=9).status_code == 404
    labels, shares = model.predict_both([*TEXTS, ""])
    assert [one["result"][0]["value"]["choices"] for one in told["results"]] == [[label] for label in labels]
    assert [one["score"] for one in told["results"]] == pytest.approx(shares.max(axis=1))
    assert told["results"][0]["result"][0] | {"value": 0, "score": 0} == {
        "from_name": "kind",
        "to_name": "said",
        "type": "choices",
        "value": 0,
        "score": 0,
    }
    # Nothing of a task is logged.
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"{", "valid JSON"),
        (b"[" * 100_000, "valid JSON"),
        (b"[]", "JSON object"),
        (b'{"label_config": "<View/>", "tasks": []}', "no Choices"),
        (b'{"label_config": "<View>", "tasks": []}', "not valid XML"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(model, sent, said):
    with serving(model) as address:
        answer = requests.post(f"{address}/predict", data=sent, timeout=9)
    assert (answer.status_code, said in answer.json()["detail"]) == (400, True)


@pytest.mark.parametrize("length", ["-1", "many", "²"])
def test_a_length_that_is_no_number_is_refused(model, length):
    with serving(model) as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=9) as connection:
            connection.sendall(f"POST /predict HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode("latin-1"))
            assert b" 400 " in connection.recv(4096)


def test_a_task_without_fields_gets_the_prediction_of_an_empty_text(model):
    with serving(model) as address:
        sent = {"tasks": [{"data": ["a"]}, {"data": "a"}], "label_config": CONFIG}
        told = requests.post(f"{address}/predict", json=sent, timeout=9).json()
    empty = model.predict_both([""])[0].tolist()
    assert [one["result"][0]["value"]["choices"] for one in told["results"]] == [empty, empty]


def test_entities_are_not_expanded():
    with pytest.raises(NotFitting, match="declaration"):
        control_of('<!DOCTYPE x [<!ENTITY a "aaaa">]><View>&a;</View>')
