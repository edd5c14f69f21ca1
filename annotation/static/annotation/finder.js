// Many classes: typing finds them, the digits take one of those shown, what fits the question and what was used last
// come first. The list stands once in the page; each question brings only the place to choose in.
"use strict";

const finder = (() => {
  const SHOWN = 10;
  // So many classes are all shown, the first ten with a digit.
  const ALL_SHOWN = 20;
  const SUGGESTED = 4;
  const RECENT = 20;
  const DIGITS = "1234567890";
  // Words that many classes share say little; shorter ones say nothing.
  const SHORTEST_WORD = 3;
  // Of this page alone, newest first: nothing of it is stored.
  let recent = [];
  let classes = null;
  let groups = [];
  let mark = null;
  let rarity = new Map();
  let fitting = new Map();
  let marked = 0;
  let chosen = null;
  let numbersAreNames = false;

  const byId = (id) => document.getElementById(id);
  const field = () => byId("find");
  const form = () => byId("answer");
  const allShown = () => classes.length <= ALL_SHOWN;
  const named = (value) => classes.find((one) => one.value === value);

  const plain = (text) => text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "").replaceAll("_", " ");
  const wordsOf = (text) => plain(text).match(/[\p{L}\p{N}]+/gu) || [];
  // "charges" and "charged" fit "charge".
  const stem = (word) => (word.length > 5 ? word.slice(0, 5) : word.replace(/s$/, ""));
  const stemsOf = (text) => new Set(wordsOf(text).filter((word) => word.length >= SHORTEST_WORD).map(stem));

  function read() {
    const list = byId("classes");
    if (!list || mark === list.dataset.classes) return Boolean(list);
    mark = list.dataset.classes;
    classes = [...list.querySelectorAll("[data-value]")].map((entry) => {
      const name = entry.querySelector("dt > span").textContent;
      const said = [...entry.querySelectorAll("dd")].map((line) => line.textContent).join(" ");
      const words = wordsOf(name);
      return {
        value: Number(entry.dataset.value),
        name,
        code: entry.dataset.code,
        plain: plain(name),
        words,
        initials: words.map((word) => word[0]).join(""),
        said: plain(said),
        group: entry.dataset.group || "",
        plainGroup: plain(entry.dataset.group || ""),
        colour: entry.dataset.colour || "",
        stems: stemsOf(`${name} ${said}`),
      };
    });
    groups = [...new Set(classes.map((one) => one.group))];
    // Under their headings they stand in another order than their numbers.
    classes.sort((one, other) => one.value - other.value);
    const known = new Map();
    for (const one of classes) for (const word of one.stems) known.set(word, (known.get(word) || 0) + 1);
    rarity = new Map([...known].map(([word, times]) => [word, Math.log(classes.length / times)]));
    numbersAreNames = classes.filter((one) => /\p{N}/u.test(one.name)).length > classes.length / 2;
    return true;
  }

  // How well a class fits what was typed: smaller is better, none where it does not.
  function rank(one, typed) {
    if (one.code === typed) return 0;
    if (one.plain.startsWith(typed)) return 1;
    if (one.words.some((word) => word.startsWith(typed))) return 2;
    if (one.initials.startsWith(typed)) return 3;
    if (one.code.startsWith(typed)) return 4;
    const parts = typed.split(/\s+/).filter(Boolean);
    if (parts.every((part) => one.words.some((word) => word.startsWith(part)))) return 5;
    if (one.plain.includes(typed)) return 6;
    if (one.plainGroup.startsWith(typed)) return 7;
    return typed.length >= SHORTEST_WORD && one.said.includes(typed) ? 8 : null;
  }

  function suggest() {
    const asked = stemsOf(byId("question").textContent);
    fitting = new Map();
    for (const one of classes) {
      let sum = 0;
      for (const word of one.stems) if (asked.has(word)) sum += rarity.get(word);
      if (sum > 0) fitting.set(one.value, sum);
    }
  }

  function first() {
    const earlier = form().dataset.earlier;
    const best = [...fitting].sort((one, other) => other[1] - one[1]).slice(0, SUGGESTED);
    const suggested = form().dataset.suggested;
    const known = [earlier, suggested].map((value) => (value === undefined ? null : Number(value)));
    const order = [chosen, ...(several.isOn() ? [] : known), ...best.map(([value]) => value), ...recent];
    const above = several.isOn() ? several.chosen() : [];
    const values = new Set(order.filter((value) => value !== null && !above.includes(value)));
    for (const one of classes) if (!above.includes(one.value)) values.add(one.value);
    return [...values].slice(0, allShown() ? ALL_SHOWN : SHOWN).map(named).filter(Boolean);
  }

  function found(typed) {
    const fits = [];
    for (const one of classes) {
      const place = rank(one, typed);
      if (place !== null) fits.push([place, -(fitting.get(one.value) || 0), one.value, one]);
    }
    fits.sort((one, other) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2]);
    return fits.map((fit) => fit[3]).slice(0, SHOWN);
  }

  function element(name, shape, ...inside) {
    const made = document.createElement(name);
    if (shape) made.className = shape;
    made.append(...inside);
    return made;
  }

  function button(one, place) {
    const confirms = "confirm" in form().dataset && !several.isOn();
    const made = element(confirms ? "label" : "button", "choice");
    if (several.isOn()) {
      made.type = "button";
      made.value = String(one.value);
      made.setAttribute("aria-pressed", String(several.chosen().includes(one.value)));
      made.addEventListener("click", () => {
        several.toggle(one.value, one.name);
        press();
      });
    } else if (confirms) {
      const radio = element("input", "");
      radio.type = "radio";
      radio.name = "choice";
      radio.required = true;
      radio.value = String(one.value);
      radio.checked = one.value === chosen;
      radio.addEventListener("change", () => {
        chosen = one.value;
      });
      made.append(radio);
    } else {
      made.name = "choice";
      made.value = String(one.value);
    }
    if (one.colour) made.dataset.colour = one.colour;
    if (place !== undefined && !numbersAreNames && DIGITS[place]) {
      made.dataset.shortcut = DIGITS[place];
      made.append(hidden(element("kbd", "", DIGITS[place])));
    }
    const name = element("span", "", one.name);
    name.dir = "auto";
    made.append(name);
    const why = reason(one, place);
    if (why) made.append(element("small", "", why));
    const isKey = one.code.length === 1;
    made.append(hidden(element("kbd", isKey ? "letters own" : "letters", isKey ? one.code.toUpperCase() : one.code)));
    return made;
  }

  function hidden(made) {
    made.setAttribute("aria-hidden", "true");
    return made;
  }

  function reason(one, place) {
    const words = byId("find-part").dataset;
    if (!several.isOn() && String(one.value) === form().dataset.earlier) return words.earlier;
    if (String(one.value) === form().dataset.suggested) return words.suggested;
    if (place === undefined) return "";
    if (field().value.trim()) return one.group;
    if (fitting.has(one.value)) return words.fits;
    return recent.includes(one.value) ? words.recent : one.group;
  }

  const hits = () => [...document.querySelectorAll("#answer .hits > .choice")];

  function highlight(place) {
    const shown = hits();
    marked = Math.max(0, Math.min(place, shown.length - 1));
    const typing = document.activeElement === field();
    shown.forEach((hit, number) => hit.classList.toggle("on", typing && number === marked));
  }

  function draw() {
    const typed = plain(field().value.trim());
    const shown = typed ? found(typed) : first();
    const place = document.querySelector("#answer .hits");
    place.classList.toggle("found", Boolean(typed) || allShown());
    place.replaceChildren(...shown.map(button));
    highlight(0);
    const words = byId("find-part").dataset;
    const none = typed && !shown.length;
    if (none) place.append(element("p", "quiet", words.none));
    if (!typed) return;
    const announcement = none ? words.none : words.found.replace("{n}", shown.length).replace("{name}", shown[0].name);
    byId("announcement").textContent = announcement;
  }

  // All classes in their order, or under their headings where there are any.
  function inGroups() {
    if (groups.length === 1 && !groups[0]) return classes.map((one) => button(one));
    return groups.map((group, number) => {
      const heading = element("p", "heading", group || byId("find-part").dataset.other);
      heading.id = `all-group-${number}`;
      heading.dir = "auto";
      const members = classes.filter((one) => one.group === group);
      const part = element("div", "group", heading, ...members.map((one) => button(one)));
      part.setAttribute("role", "group");
      part.setAttribute("aria-labelledby", heading.id);
      return part;
    });
  }

  function pick(hit) {
    if (hit) hit.click();
  }

  // Says of every button whether its class is chosen; none is moved under a finger.
  function press() {
    const above = several.chosen();
    for (const hit of form().querySelectorAll("button.choice")) {
      hit.setAttribute("aria-pressed", String(above.includes(Number(hit.value))));
    }
  }

  function typedKey(event) {
    // A letter that a layout has among its digits goes on with a name, and begins none.
    const goesOn = field().value && /^\p{L}$/u.test(event.key);
    const digit = goesOn ? -1 : DIGITS.indexOf(keys.digit(event) ?? event.key);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      highlight(marked + (event.key === "ArrowDown" ? 1 : -1));
    } else if (digit >= 0 && !numbersAreNames) {
      event.preventDefault();
      (several.isOn() ? take : pick)(hits()[digit]);
    } else if (event.key === "-" && several.isOn() && !field().value) {
      event.preventDefault();
      several.none();
    } else if (event.key === "Escape") {
      field().value = "";
      draw();
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (event.repeat) return;
      const hit = hits()[marked];
      const done = several.isOn() ? several.ready() && !marked : hit?.querySelector("input:checked");
      if (done && !field().value.trim()) form().querySelector(".wide").click();
      else if (field().value.trim() || marked) take(hit);
    }
  }

  // In a project that asks for a confirmation the chosen class is shown first and waits for Enter.
  function take(hit) {
    pick(hit);
    if (!hit || !("confirm" in form().dataset || several.isOn())) return;
    field().value = "";
    draw();
  }

  // The key of a class's own, with Shift, wherever its button stands. A code of more letters is none.
  function keyed(key) {
    if (!field() || byId("find-part").hidden) return false;
    const one = classes.find((known) => known.code === key);
    if (!one || key.length !== 1) return false;
    const shown = hits().find((hit) => Number((hit.querySelector("input") || hit).value) === one.value);
    const hit = shown || button(one);
    if (!shown) document.querySelector("#answer .hits").prepend(hit);
    take(hit);
    return true;
  }

  function start() {
    if (!field() || "ready" in form().dataset || !read()) return;
    if (form().dataset.classes !== mark) {
      location.reload();
      return;
    }
    form().dataset.ready = "";
    chosen = null;
    if (several.isOn()) {
      const earlier = (form().dataset.earlier || "").split(" ").filter(Boolean).map(Number);
      for (const one of earlier.map(named).filter(Boolean)) several.toggle(one.value, one.name);
      form().addEventListener("chosen", press);
    }
    byId("find-part").hidden = false;
    suggest();
    draw();
    field().addEventListener("input", draw);
    field().addEventListener("keydown", typedKey);
    for (const name of ["focus", "blur"]) field().addEventListener(name, () => highlight(marked));
    const all = document.querySelector("#answer .all");
    all.hidden = allShown() && groups.length === 1;
    all.addEventListener("toggle", () => {
      const place = all.querySelector("fieldset");
      if (all.open && !place.childElementCount) place.append(...inGroups());
    });
    form().addEventListener("submit", (event) => {
      const values = several.isOn() ? several.chosen() : [Number(event.submitter?.value || chosen)];
      recent = [...values, ...recent.filter((other) => !values.includes(other))].slice(0, RECENT);
    });
  }

  // A letter typed anywhere is the beginning of a class; the commands of the page take Shift then.
  function takes(event) {
    if (!field() || byId("find-part").hidden || event.shiftKey) return false;
    if (!numbersAreNames && keys.digit(event) !== null) return false;
    const searched = numbersAreNames ? /^[\p{L}\p{N}]$/u : /^\p{L}$/u;
    if (!searched.test(event.key) && event.key !== "/") return false;
    field().focus();
    if (event.key === "/") event.preventDefault();
    return true;
  }

  return { start, takes, keyed, isIn: (element) => element === field() };
})();
