// Spans of a text: words are selected by mouse, touch or keys and marked with a type. The hidden field has the answer.
"use strict";

const spans = (() => {
  let words = [];
  let marks = [];
  let anchor = -1;
  let active = -1;
  let pointer = "";
  let dragging = false;

  const byId = (id) => document.getElementById(id);
  const place = (element) => words.findIndex((word) => word.element === element?.closest?.("[role=option]"));
  const first = () => Math.min(anchor, active);
  const last = () => Math.max(anchor, active);
  const within = (mark, start, end) => mark.start < end && mark.end > start;
  const markOf = (word) => marks.find((mark) => within(mark, word.start, word.end));
  const selected = () => words.slice(first(), last() + 1);
  const wordsOf = (mark) => words.filter((word) => within(mark, word.start, word.end));
  const textOf = (some) => some.map((word) => word.element.textContent).join(" ");

  function say(text, isProblem) {
    const problem = byId("problem");
    if (problem) {
      problem.textContent = isProblem ? text : "";
      problem.hidden = !isProblem;
    }
    if (byId("announcement")) byId("announcement").textContent = text;
  }

  function select(chosen, extend) {
    active = Math.max(-1, Math.min(words.length - 1, chosen));
    if (!extend || anchor < 0) anchor = active;
    paint();
    words[active]?.element.scrollIntoView({ block: "nearest" });
  }

  function colourOf(type) {
    return document.querySelector(`[data-type="${CSS.escape(type)}"]`)?.dataset.colour;
  }

  function paintWord(word, number) {
    const mark = markOf(word);
    const { element } = word;
    element.setAttribute("aria-selected", String(anchor >= 0 && number >= first() && number <= last()));
    element.classList.toggle("marked", Boolean(mark));
    if (!mark) {
      for (const name of ["aria-label", "data-mark", "data-colour"]) element.removeAttribute(name);
      return;
    }
    element.setAttribute("aria-label", `${element.textContent}, ${mark.type}`);
    if (wordsOf(mark).at(-1) === word) element.dataset.mark = mark.type;
    else delete element.dataset.mark;
    const colour = colourOf(mark.type);
    if (colour) element.dataset.colour = colour;
    else delete element.dataset.colour;
  }

  function listed(mark) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    const text = textOf(wordsOf(mark));
    button.type = "button";
    button.className = "button second";
    button.textContent = `${mark.type}: ${text} ×`;
    button.setAttribute("aria-label", `${byId("spans").dataset.remove}: ${mark.type}, ${text}`);
    button.addEventListener("click", () => {
      remove([mark]);
      byId("question").focus();
    });
    item.append(button);
    return item;
  }

  function paint() {
    words.forEach(paintWord);
    marks.sort((one, other) => one.start - other.start);
    byId("marks").replaceChildren(...marks.map(listed));
    byId("marks").hidden = !marks.length;
    byId("spans").value = JSON.stringify(marks.map(({ start, end, type }) => [start, end, type]));
    if (active < 0) byId("question").removeAttribute("aria-activedescendant");
    else byId("question").setAttribute("aria-activedescendant", words[active].element.id);
  }

  function remove(some) {
    if (!some.length) return;
    marks = marks.filter((mark) => !some.includes(mark));
    paint();
    say(`${some.map((mark) => textOf(wordsOf(mark))).join(", ")}: ${byId("spans").dataset.removed}`);
  }

  function mark(type) {
    if (anchor < 0) return say(byId("spans").dataset.nothing, true);
    const some = selected();
    const [start, end] = [some[0].start, some.at(-1).end];
    const covered = marks.filter((each) => within(each, start, end));
    const [only] = covered;
    if (covered.length > 1 || (only && !some.every((word) => within(only, word.start, word.end)))) {
      return say(byId("spans").dataset.overlap, true);
    }
    if (only) only.type = type;
    else marks.push({ start, end, type });
    anchor = active;
    paint();
    say(`${textOf(only ? wordsOf(only) : some)}: ${type}`);
  }

  const read = (written) => JSON.parse(written).map(([start, end, type]) => ({ start, end, type }));

  function accept() {
    if (!byId("spans").dataset.proposed) return;
    marks = read(byId("spans").dataset.proposed);
    paint();
    say(marks.map((mark) => `${textOf(wordsOf(mark))}: ${mark.type}`).join(", "));
    byId("question").focus();
  }

  function tap(chosen) {
    if (chosen === anchor && chosen === active) select(-1, false);
    else select(chosen, anchor >= 0 && !selected().some(markOf) && !markOf(words[chosen]));
  }

  document.addEventListener("pointerdown", (event) => {
    const chosen = place(event.target);
    if (chosen < 0) return;
    pointer = event.pointerType;
    if (pointer !== "mouse" || event.button !== 0) return;
    dragging = true;
    select(chosen, event.shiftKey);
  });

  document.addEventListener("pointerover", (event) => {
    const chosen = dragging ? place(event.target) : -1;
    if (chosen >= 0) select(chosen, true);
  });

  document.addEventListener("pointerup", () => {
    dragging = false;
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-type]");
    const chosen = place(event.target);
    if (button) mark(button.dataset.type);
    else if (event.target.closest?.("#accept")) accept();
    else if (event.target.closest?.("#unmark")) remove(marks.filter((each) => selected().some((word) => markOf(word) === each)));
    else if (chosen >= 0 && pointer !== "mouse") tap(chosen);
  });

  const MOVES = {
    ArrowRight: () => active + 1,
    ArrowDown: () => active + 1,
    ArrowLeft: () => Math.max(0, active - 1),
    ArrowUp: () => Math.max(0, active - 1),
    Home: () => 0,
    End: () => words.length - 1,
  };

  document.addEventListener("keydown", (event) => {
    if (!words.length || event.target !== byId("question") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") select(-1, false);
    if (!(event.key in MOVES)) return;
    event.preventDefault();
    select(MOVES[event.key](), event.shiftKey);
  });

  function start() {
    words = [];
    if (!byId("spans")) return;
    words = [...document.querySelectorAll("#question [role=option]")].map((element) => ({
      element,
      start: Number(element.dataset.start),
      end: Number(element.dataset.end),
    }));
    marks = read(byId("spans").dataset.given);
    if (byId("accept")) byId("accept").hidden = !byId("spans").dataset.proposed;
    anchor = active = -1;
    paint();
  }

  start();
  return { start };
})();
