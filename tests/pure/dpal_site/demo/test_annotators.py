from collections import Counter

from dpal_site.demo.annotators import LabelPage, SimulatedAnnotator

LABEL_PAGE = """
<h1 id="ask">Which?</h1>
<div class="question" id="question"><p>turn on <br>the <b>light</b></p></div>
<p>not the question</p>
<form id="answer" method="post" action="/assignments/7/submit/">
<input type="hidden" name="csrfmiddlewaretoken" value="abc">
<button name="choice" value="0">yes</button><button name="choice" value="1">no</button></form>
<form method="post" action="/skip/"><input type="hidden" name="csrfmiddlewaretoken" value="abc">
<button name="reason" value="x">Skip</button></form>
"""


def test_a_page_gives_the_question_and_its_form():
    page = LabelPage("http://site/", LABEL_PAGE)
    assert " ".join(page.question.split()) == "turn on the light"
    form = page.forms["answer"]
    assert (form.action, form.hidden, form.choices) == (
        "http://site/assignments/7/submit/",
        {"csrfmiddlewaretoken": "abc"},
        ["0", "1"],
    )
    assert page.forms["/skip/"].choices == []


def test_many_classes_are_chosen_by_boxes_or_from_a_list():
    boxes = "".join(f'<input type="radio" name="choice" value="{n}">' for n in range(12))
    listed = "".join(f'<option value="{n}">{n}</option>' for n in range(77))
    other = '<select name="reason"><option value="x">odd</option></select>'
    for inside, number in (
        (boxes, 12),
        (f'<select name="choice"><option value="">Choose</option>{listed}</select>', 77),
    ):
        form = LabelPage("http://site/", f'<form id="answer">{other}{inside}</form>').forms["answer"]
        assert form.choices == [str(n) for n in range(number)]


def test_a_form_goes_to_the_process_its_page_came_from():
    page = LabelPage("http://127.0.0.1:8001/label/", LABEL_PAGE)
    assert page.forms["answer"].action == "http://127.0.0.1:8001/assignments/7/submit/"


def test_a_page_without_a_question_has_no_answer_form():
    assert "answer" not in LabelPage("http://site/", "<p>nothing to do</p>").forms


def test_mistakes_are_as_frequent_as_said():
    person = SimulatedAnnotator(name="a", password="", site="", desks={}, seed=3)
    given = Counter(person._with_mistakes(0, ["0", "1", "2"]) for _ in range(5000))
    # Five standard deviations around 150 mistakes, shared by the two wrong answers.
    assert abs(given["1"] + given["2"] - 150) < 5 * (5000 * 0.03 * 0.97) ** 0.5
    assert given["1"] > 40 < given["2"]
