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


def test_mistakes_are_as_frequent_as_said():
    person = SimulatedAnnotator(name="a", password="", site="", desks={}, seed=3)
    given = Counter(person._with_mistakes(0, ["0", "1", "2"]) for _ in range(5000))
    # Five standard deviations around 150 mistakes, shared by the two wrong answers.
    assert abs(given["1"] + given["2"] - 150) < 5 * (5000 * 0.03 * 0.97) ** 0.5
    assert given["1"] > 40 < given["2"]
