import ast
import importlib.metadata
import json
import re
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
OURS = ("addons", "annotation", "dpal_site", "learner", "privacy")
# Modules that run what they read, and those that talk to other hosts.
RUNS_WHAT_IT_READS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "code"}
REACHES_OUT = {
    "requests",
    "httpx",
    "aiohttp",
    "urllib3",
    "http.client",
    "urllib.request",
    "ftplib",
    "smtplib",
    "telnetlib",
    "boto3",
    "botocore",
}
MAY_REACH_OUT = {
    "annotation/work/outgoing.py": "to hosts an administrator listed, at addresses that were checked",
    "addons/prolific/interface.py": "to the one host that PROLIFIC_URL names, at an address that was checked",
    "addons/webhooks/services.py": "to the same",
    "addons/language_models/endpoint.py": "to language models an administrator named, at addresses that were checked",
    "annotation/work/object_storage.py": "to the bucket that STORAGE_URL names",
    "annotation/people/services/letters.py": "names the errors of the mail server that EMAIL_URL names",
    "dpal_site/accounts/openid/issuer.py": "to the issuer that OIDC_ISSUER names, and where its own description leads",
    "dpal_site/environment.py": "describes that bucket",
    "dpal_site/operations/healthcheck.py": "to the process beside it",
    "dpal_site/embedded/processes.py": "to the processes it started",
    "dpal_site/operations/label_pages.py": "to the label process, at the one address that LABEL_PROCESS_URL names",
    "dpal_site/demo/annotators.py": "to the site that runs the demo",
    "addons/spark/stores.py": "to the bucket that STORAGE_URL names, from a cluster's hosts",
    "privacy/ledger/auditor/witness.py": "to the site that somebody on another host watches with it",
}
MAY_MARK_SAFE = {
    "annotation/questions/guidelines.py": "guidelines, of whose Markdown the renderer escapes all that is written",
    "annotation/questions/views/label_parts.py": "ids and tokens of our own making",
    "learner/releases/views.py": "a model card, which escapes what it quotes",
}
MAY_START_PROGRAMS = {
    *(f"dpal_site/embedded/{name}.py" for name in ("host", "postgres", "processes", "valkey")),
    "annotation/work/limits.py",
    "dpal_site/wheel.py",
    "addons/spark/engine.py",
    "learner/features/crew.py",
}
RUNNING = {"eval", "exec", "compile", "__import__"}


@cache
def sources():
    return {
        str(path.relative_to(ROOT)): path.read_text()
        for folder in OURS
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def called(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def breaches(name, source):
    tree = ast.parse(source)
    for module in imported(tree):
        yield from forbidden_import(name, module)
    for function, node in called(tree):
        yield from forbidden_call(function, node)
        yield from forbidden_query(function, node)
    if "csv.writer(" in source and "safe_cell" not in source:
        yield "writes cells that a spreadsheet may run"
    yield from written_secrets(tree)


def forbidden_import(name, module):
    if module.split(".")[0] in RUNS_WHAT_IT_READS:
        yield f"imports {module}"
    if (module in REACHES_OUT or module.split(".")[0] in REACHES_OUT) and name not in MAY_REACH_OUT:
        yield f"reaches out by {module}"
    if module == "django.utils.safestring.mark_safe" and name not in MAY_MARK_SAFE:
        yield "marks text as safe"
    if module.split(".")[0] == "subprocess" and name not in MAY_START_PROGRAMS:
        yield "starts programs"
    if re.match(r"(xml(?!\.sax\.saxutils)|lxml|defusedxml|html5lib)(\.|$)", module):
        yield "reads XML"
    if module.endswith("csrf_exempt"):
        yield "exempts a view from CSRF"


def forbidden_call(function, node):
    options = {word.arg: ast.unparse(word.value) for word in node.keywords}
    if function in RUNNING or function in ("os.system", "os.popen", "yaml.load", "yaml.unsafe_load", "torch.load"):
        yield f"calls {function}"
    if re.search(r"\bhashlib\.(md5|sha1|new)$", function):
        yield "uses a weak hash"
    if function.endswith("np.load") and options.get("allow_pickle") != "False":
        yield "loads arrays that may hold objects"
    if options.get("shell") == "True":
        yield "runs a shell"
    if options.get("verify") == "False" or function.endswith("_create_unverified_context"):
        yield "trusts any certificate"


def forbidden_query(function, node):
    if function.endswith(("filter", "exclude", "get", "order_by")) and any(
        word.arg is None and re.search(r"request\.|GET|POST|query_params", ast.unparse(word.value))
        for word in node.keywords
    ):
        yield "lets a visitor name the fields of a query"
    if function.endswith("order_by") and re.search(r"request\.|\.GET", " ".join(map(ast.unparse, node.args))):
        yield "lets a visitor name the order of a query"
    if function.endswith((".raw", ".extra")):
        yield "goes round the query builder"


def written_secrets(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for target in node.targets:
                secret = re.fullmatch(r"(.*_)?(SECRET|PASSWORD|TOKEN|KEY)(_KEY)?", ast.unparse(target))
                if secret and re.fullmatch(r"(?=.*\d)[\w+/=!@#$%^&*(){}-]{16,}", node.value.value):
                    yield f"{ast.unparse(target)} is written in the code"


def test_no_file_breaks_a_rule():
    found = {name: said for name, source in sources().items() if (said := list(breaches(name, source)))}
    assert found == {}


def test_an_app_that_nobody_has_installed_begins_with_one_migration():
    folders = [path for app in OURS for path in (ROOT / app).rglob("migrations") if path.is_dir()]
    assert len(folders) >= len(OURS)
    for folder in folders:
        assert [path.name for path in folder.glob("0*.py")] == ["0001_tables.py"], folder


def test_what_is_excused_still_exists():
    assert {*MAY_REACH_OUT, *MAY_MARK_SAFE, *MAY_START_PROGRAMS} <= set(sources())


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ("import pickle\nmodel = pickle.load(file)", "imports pickle"),
        ("from joblib import load", "imports joblib"),
        ("eval(rule)", "calls eval"),
        ("import os\nos.system(name)", "calls os.system"),
        ("import numpy as np\nnp.load(path, allow_pickle=True)", "loads arrays that may hold objects"),
        ("import numpy as np\nnp.load(path)", "loads arrays that may hold objects"),
        ("import requests\nrequests.get(task['url'])", "reaches out by requests"),
        ("from urllib.request import urlopen", "reaches out by urllib.request"),
        ("import subprocess\nsubprocess.run(line, shell=True)", "runs a shell"),
        ("session.get(url, verify=False)", "trusts any certificate"),
        ("Task.objects.filter(**request.GET.dict())", "lets a visitor name the fields of a query"),
        ("User.objects.order_by(request.GET['order'])", "lets a visitor name the order of a query"),
        ("from django.utils.safestring import mark_safe", "marks text as safe"),
        ("from django.views.decorators.csrf import csrf_exempt", "exempts a view from CSRF"),
        ("from xml.etree import ElementTree", "reads XML"),
        ("import hashlib\nhashlib.md5(secret)", "uses a weak hash"),
        ("import csv\ncsv.writer(file).writerow(row)", "writes cells that a spreadsheet may run"),
        ("SECRET_KEY = 'fefwefwef13LFK{P!)@#*!)kdsjfWF2l+i5e3t'", "SECRET_KEY is written in the code"),
    ],
)
def test_a_breach_is_found(planted, said):
    assert said in list(breaches("annotation/planted.py", planted))


def test_templates_escape_everything():
    template = re.compile(
        r"\|\s*safe\b|autoescape\s+off|\{%\s*filter\s+safe|safeseq|<script(?![^>]*\bsrc=)|\son\w+=|javascript:"
    )
    found = {
        str(path.relative_to(ROOT)): hits
        for folder in OURS
        for path in (ROOT / folder).rglob("*.html")
        if (hits := template.findall(path.read_text()))
    }
    assert found == {}
    for planted in ("{{ text|safe }}", "{% autoescape off %}", "<script>run()</script>", '<b onclick="run()">'):
        assert template.search(planted)


# Scripts of ours: what would run text, ask another host, listen to other windows or copy foreign names into objects.
SCRIPT_RULES = re.compile(
    r"\beval\(|new Function|document\.write|insertAdjacentHTML|outerHTML\s*=|https?://(?!www\.w3\.org)"
    r"|[\"']message[\"']|postMessage|__proto__|Object\.assign|javascript:|setTimeout\([\"']"
)
INNER_HTML = re.compile(r"innerHTML\s*=")
# The parts of pages it puts in come from the site, which escaped them.
MAY_PUT_IN_PARTS = {"annotation/static/annotation/label.js"}


def test_our_scripts_break_no_rule():
    scripts = {
        str(path.relative_to(ROOT)): path.read_text() for folder in OURS for path in (ROOT / folder).rglob("*.js")
    }
    assert len(scripts) >= 3
    assert {name: hits for name, text in scripts.items() if (hits := SCRIPT_RULES.findall(text))} == {}
    assert {name for name, text in scripts.items() if INNER_HTML.search(text)} <= MAY_PUT_IN_PARTS
    for planted in (
        "eval(answer)",
        "node.insertAdjacentHTML('beforeend', text)",
        'window.addEventListener("message", take)',
        "fetch('https://elsewhere.example/')",
        "Object.assign(settings, JSON.parse(text))",
    ):
        assert SCRIPT_RULES.search(planted), planted
    assert INNER_HTML.search("holder.innerHTML = text")


# --- libraries


def plain(library):
    return re.split(r"==|\[", library)[0].lower().replace("_", "-")


def locked(name):
    found = {}
    for block in re.split(r"\n(?=\S)", (ROOT / name).read_text()):
        head = block.split("\n")[0]
        if head.startswith("#") or not head.strip():
            continue
        marker = Requirement(head.rstrip(" \\")).marker
        if marker is None or marker.evaluate():
            found[head.split(" ")[0]] = block.count("--hash=sha256:")
    return found


@pytest.mark.parametrize("name", ["requirements.lock.txt", "requirements.runtime.lock.txt"])
def test_every_library_is_pinned_to_bytes(name):
    libraries = locked(name)
    assert len(libraries) > 50
    assert {each for each in libraries if not re.fullmatch(r"[A-Za-z0-9._-]+(\[[\w,-]+\])?==[\w.!+]+", each)} == set()
    assert {each for each, hashes in libraries.items() if not hashes} == set()


def known_problems(libraries):
    for advisory in json.loads((ROOT / "deploy" / "advisories.json").read_text())["advisories"]:
        since, fixed = Version(advisory["introduced"]), advisory["fixed_in"]
        for library in libraries:
            version = Version(library.partition("==")[2])
            if plain(library) == advisory["library"] and since <= version and (not fixed or version < Version(fixed)):
                yield f"{library}: {advisory['id']}"


@pytest.mark.parametrize("name", ["requirements.lock.txt", "requirements.runtime.lock.txt"])
def test_no_locked_version_falls_under_a_listed_advisory(name):
    assert list(known_problems(locked(name))) == []


def test_an_old_version_is_found():
    found = list(known_problems(["Django==5.2.3", "pyarrow==13.0.0", "Django==5.2.19"]))
    assert {each.partition(":")[0] for each in found} == {"Django==5.2.3", "pyarrow==13.0.0"}


def test_the_listed_libraries_are_in_the_lock():
    names = {
        each.partition("==")[0].partition("[")[0].lower().replace("_", "-") for each in locked("requirements.lock.txt")
    }
    listed = {each["library"] for each in json.loads((ROOT / "deploy" / "advisories.json").read_text())["advisories"]}
    assert listed <= names


def test_what_runs_is_what_is_locked():
    for each in locked("requirements.runtime.lock.txt"):
        assert importlib.metadata.version(plain(each)) == each.partition("==")[2]
