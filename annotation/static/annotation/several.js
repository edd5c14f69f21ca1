// Several classes of one record: no more than declared, and "none" instead of any, never beside one. What was found by
// typing stands above the field as a box that is ticked. Without this file the boxes work, and the site says what is wrong.
"use strict";

const several = (() => {
  const form = () => document.getElementById("answer");
  const chips = () => document.getElementById("chosen");
  const isOn = () => Boolean(form() && "most" in form().dataset);
  const boxes = () => [...form().querySelectorAll("input[name=choice]")];
  const ticked = () => boxes().filter((box) => box.checked);
  // Those outside of noscript and of parts that wait for a script.
  const none = () => form().querySelector("input[name=none]");
  const chosen = () => ticked().map((box) => Number(box.value));

  function complain(text) {
    const problem = document.getElementById("problem");
    problem.textContent = text;
    problem.hidden = !text;
    document.getElementById("announcement").textContent = text;
  }

  function hasRoom() {
    if (ticked().length < Number(form().dataset.most)) return true;
    complain(form().dataset.tooMany);
    return false;
  }

  // A class that was found by typing: its box stands among those chosen for as long as it is ticked.
  function toggle(value, name) {
    const known = boxes().find((box) => Number(box.value) === value);
    if (known) {
      known.closest("label").remove();
      complain("");
      return false;
    }
    if (!hasRoom()) return false;
    const box = document.createElement("input");
    box.type = "checkbox";
    box.name = "choice";
    box.value = String(value);
    box.checked = true;
    const text = document.createElement("span");
    text.dir = "auto";
    text.textContent = name;
    const label = document.createElement("label");
    label.className = "choice";
    label.append(box, text);
    chips().append(label);
    if (none()) none().checked = false;
    complain("");
    return true;
  }

  const ready = () => ticked().length > 0 || Boolean(none()?.checked);

  document.addEventListener("change", (event) => {
    const box = event.target;
    if (!isOn() || !form().contains(box) || box.type !== "checkbox") return;
    if (box.name === "none") {
      if (box.checked) for (const other of ticked()) drop(other);
    } else if (box.checked && ticked().length > Number(form().dataset.most)) {
      box.checked = false;
      complain(form().dataset.tooMany);
      return;
    } else if (box.checked && none()) {
      none().checked = false;
    } else if (chips()?.contains(box)) {
      drop(box);
    }
    complain("");
    form().dispatchEvent(new Event("chosen"));
  });

  function drop(box) {
    if (chips()?.contains(box)) box.closest("label").remove();
    else box.checked = false;
  }

  return { isOn, chosen, toggle, ready, none: () => none()?.click() };
})();
