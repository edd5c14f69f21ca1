import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from http.cookiejar import CookieJar
from urllib.error import HTTPError
from urllib.parse import urlencode

import pytest
import redis

from dpal_site.celery import app
from dpal_site.embedded import host
from dpal_site.embedded.postgres import EmbeddedPostgres
from dpal_site.embedded.servers import REPOSITORY
from dpal_site.embedded.valkey import EmbeddedValkey

pytestmark = pytest.mark.faults


def get(url):
    with urllib.request.urlopen(url, timeout=120) as response:
        return response.status, response.read().decode()


def command_of(pid):
    process = host.running_process(pid)
    return process.command if process else ""


def answers(url):
    try:
        return get(f"{url}/healthz") == (200, "ok\n")
    except OSError:
        return False


def answers_ready(url):
    try:
        return get(url) == (200, "database: ok\nbroker: ok\nworker: ok\ndisk: ok\n")
    except HTTPError as error:
        return error.code != 503 and pytest.fail(f"readiness answered {error.code}")


def children_of(site):
    found = subprocess.run(["pgrep", "-P", str(site.pid)], capture_output=True)
    return [int(pid) for pid in found.stdout.split()]


def serving(site, port):
    return [pid for pid in children_of(site) if f"--bind 127.0.0.1:{port}" in command_of(pid)]


def address_in(said):
    found = [line for line in said if line.startswith("The site runs at")]
    return re.search(r"http://127\.0\.0\.1:\d+", found[0]) if found else None


@pytest.mark.slow
def test_one_command_runs_a_site_and_ctrl_c_leaves_nothing_behind(tmp_path):
    environment = {**os.environ, "DPAL_VAR": str(tmp_path / "var"), "DPAL_NO_SERVERS": "", "PYTHONUNBUFFERED": "1"}
    port = host.free_port()
    command = [sys.executable, "manage.py", "run", "--port", str(port), "--workers", "1", "--echo"]
    site = subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    said = []

    def read_on():
        # A full pipe would hold up whoever writes to it, and what it would start again.
        with site.stdout:
            said.extend(site.stdout)

    reader = threading.Thread(target=read_on)
    reader.start()
    try:
        assert host.wait_until(lambda: site.poll() is not None or address_in(said), 120), said
        url = address_in(said)
        assert url, said
        assert get(f"{url[0]}/healthz") == (200, "ok\n")
        # The worker shows itself within a beat of the clock.
        assert host.wait_until(lambda: answers_ready(f"{url[0]}/readyz"), 120)
        status, login = get(f"{url[0]}/login/")
        assert status == 200
        stylesheet = re.search(r'href="(/static/[^"]+\.css)"', login)
        assert stylesheet, login
        assert get(url[0] + stylesheet[1])[0] == 200
        children = children_of(site)
        assert len(children) == 6  # web, label, worker, helper, outside, beat
        # One that dies takes nobody with it.
        (web,) = serving(site, port)
        os.kill(web, signal.SIGKILL)
        # Its successor may be there before anybody saw the address silent.
        assert host.wait_until(lambda: site.poll() is not None or set(serving(site, port)) - {web}, 120)
        assert host.wait_until(lambda: site.poll() is not None or answers(url[0]), 90)
        assert site.poll() is None
        children.extend(serving(site, port))
        assert not {pid for pid in children if pid != web and host.running_process(pid) is None}
    finally:
        site.send_signal(signal.SIGINT)
        site.wait(timeout=120)
        reader.join(timeout=120)
    assert site.returncode == 0, said
    assert said[-1] == "Stopped.\n"
    assert not any(host.running_process(pid) for pid in children)
    assert EmbeddedPostgres(tmp_path / "var" / "postgres").status == "stopped"
    assert EmbeddedValkey(tmp_path / "var" / "valkey").status == "stopped"


def waiting_consumers(broker_url):
    with redis.Redis.from_url(broker_url) as broker:
        number = str(broker.connection_pool.connection_kwargs["db"])
        return [client for client in broker.client_list() if client["db"] == number and client["cmd"] == "brpop"]


@pytest.mark.slow
def test_a_restarted_worker_takes_the_task_sent_while_it_was_away(celery_worker_process, embedded_servers):
    worker, name = celery_worker_process, "annotation.tasks.return_expired_leases_task"

    def succeeded(times):
        return lambda: worker.log_path("worker").read_text().count(f"Task {name}") >= 2 * times

    app.send_task(name)
    assert host.wait_until(succeeded(1), 120), worker.log_path("worker").read_text()
    # The broker hands a task to a dead worker while one of its processes holds the connection, and until it notices.
    os.killpg(worker.pid("worker"), signal.SIGKILL)
    assert host.wait_until(lambda: host.running_process(worker.pid("worker")) is None, 120)
    assert host.wait_until(lambda: not waiting_consumers(embedded_servers.broker_url), 120)
    app.send_task(name)
    worker.restart("worker")
    assert host.wait_until(succeeded(2), 120), worker.log_path("worker").read_text()


@pytest.mark.slow
def test_the_live_site_knows_who_is_in_the_test_database(live_site, django_user_model):
    django_user_model.objects.create_user("ann", password="a long password")
    cookies = CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
    page = browser.open(f"{live_site.url}/login/", timeout=120).read().decode()
    form = {
        "login": "ann",
        "password": "a long password",
        "csrfmiddlewaretoken": re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[1],
        "next": "/healthz",
    }
    browser.open(f"{live_site.url}/login/", urlencode(form).encode(), timeout=120)
    assert "sessionid" in {cookie.name for cookie in cookies}
