"""Where templates lie: each in the folder of the room whose modules show it, and none that nothing shows."""

import re
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
APPS = ("annotation", "learner")
TEMPLATE = re.compile(r"\b(?:annotation|learner)/(?:[a-z_]+/)?[a-z_]+\.html")
# What lies beside the rooms, since modules of no room show it or several rooms do.
SHARED = {
    "annotation": "_actions _field _form_errors _job _label_budget _moving _no_question _project_nav",
    "learner": "_accuracy _button _card _chart _coming_charges _more_answers _next_step _releases_table _standing"
    " _version_zero close_block overview releases retire",
}


def written():
    """Return the modules and templates that may name a template, the table of what can be read left out."""
    return {
        str(path.relative_to(ROOT)): path.read_text()
        for app in (*APPS, "dpal_site")
        for suffix in ("py", "html")
        for path in (ROOT / app).rglob(f"*.{suffix}")
        if "observables" not in path.parts
    }


def place_of(path):
    """Return the app and the room a module or a template belongs to; the room is empty where it belongs to none."""
    app, *inside = path.split("/templates/")[-1].split("/")
    room = inside[0] if len(inside) > 1 and (ROOT / app / inside[0]).is_dir() else ""
    return app, "" if room in ("templatetags", "management") else room


def shown_from(sources):
    """Return for each template the modules and templates that name it."""
    found = defaultdict(set)
    for path, source in sources.items():
        for name in TEMPLATE.findall(source):
            if not path.endswith(f"/templates/{name}"):
                found[name].add(path)
    return found


def templates(sources):
    return {path.split("/templates/")[1] for path in sources if re.match(r"(annotation|learner)/templates/", path)}


def shared():
    return {f"{app}/{name}.html" for app, names in SHARED.items() for name in names.split()}


def misplaced(sources):
    """Yield what is wrong with the place of a template."""
    shown = shown_from(sources)
    for name in sorted(templates(sources)):
        places = {place_of(path) for path in shown[name]}
        app, room = place_of(name)
        if not places:
            yield f"{name} is shown by nothing"
        elif not room and name not in shared():
            yield f"{name} lies in no room"
        elif not room and len(places) == 1 and places != {(app, "")}:
            yield f"{name} is shown by one room alone"
        elif room and (app, room) not in places:
            yield f"{name} lies in a room that does not show it"
        elif room and name.rpartition("/")[2].removeprefix("_").startswith(f"{room}_"):
            yield f"{name} repeats its room"
    for name in sorted(set(shown) - templates(sources)):
        yield f"{name} is named and lies nowhere"


def floors():
    """Return how far down each room of an app stands."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = {contract["name"]: contract["layers"] for contract in contracts if contract["type"] == "layers"}
    return {
        (app, room.strip()): (APPS.index(app), -floor)
        for app in APPS
        for floor, rooms in enumerate(layers[f"inside {app}"])
        for room in rooms.split("|")
    }


def pointing_up(sources):
    """Yield the templates that take a part from a room above their own."""
    standing = floors()
    for name, shown in sorted(shown_from(sources).items()):
        for path in sorted(shown):
            room, taken = place_of(path), place_of(name)
            if path.endswith(".html") and room[1] and taken[1] and standing[taken] > standing[room]:
                yield f"{path} takes {name}"


def test_every_template_lies_in_the_folder_of_a_room_that_shows_it():
    assert len(templates(written())) > 140
    assert list(misplaced(written())) == []


def test_what_is_listed_as_shared_is_there():
    assert shared() <= templates(written())


def test_a_template_takes_parts_of_its_own_room_and_of_those_below():
    assert list(pointing_up(written())) == []


def test_a_misplaced_template_is_found():
    page = "annotation/templates/annotation"
    for name, module, said in (
        ("data/alone", None, "is shown by nothing"),
        ("alone", "annotation/data/views/alone.py", "lies in no room"),
        ("people/alone", "annotation/data/views/alone.py", "lies in a room that does not show it"),
        ("people/alone", "annotation/views.py", "lies in a room that does not show it"),
        ("data/data_alone", "annotation/data/views/alone.py", "repeats its room"),
        ("data/_data_alone", "annotation/data/views/alone.py", "repeats its room"),
    ):
        sources = written() | {f"{page}/{name}.html": ""}
        if module:
            sources[module] = f'render(request, "annotation/{name}.html")'
        assert list(misplaced(sources)) == [f"annotation/{name}.html {said}"]
    sources = written() | {"annotation/data/views/alone.py": 'render(request, "annotation/data/gone.html")'}
    assert list(misplaced(sources)) == ["annotation/data/gone.html is named and lies nowhere"]
    itself = written() | {f"{page}/data/alone.html": '{% include "annotation/data/alone.html" %}'}
    assert list(misplaced(itself)) == ["annotation/data/alone.html is shown by nothing"]


def test_a_shared_template_that_one_room_shows_is_found():
    sources = {path: text.replace("annotation/_actions.html", "") for path, text in written().items()}
    sources["annotation/data/views/alone.py"] = 'render(request, "annotation/_actions.html")'
    assert list(misplaced(sources)) == ["annotation/_actions.html is shown by one room alone"]


def test_a_part_of_a_room_above_is_found():
    page = "annotation/templates/annotation/statement/log.html"
    sources = written() | {page: '{% include "annotation/questions/_said.html" %}'}
    assert list(pointing_up(sources)) == [f"{page} takes annotation/questions/_said.html"]
