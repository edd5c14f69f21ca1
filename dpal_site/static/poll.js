// What a page asks for again and again is not asked for while nobody sees the page; it goes on once it is seen again.
"use strict";

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && !event.detail.requestConfig.triggeringEvent) event.preventDefault();
});

// A part that is sent anew leaves open what the reader opened, and the focus where it was.
(() => {
  const named = (element) => ["href", "aria-label"].map((name) => element.getAttribute(name)).find(Boolean)
    ?? element.textContent.trim();
  let opened = [];
  let stood = null;
  document.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
    const here = document.activeElement;
    opened = [...target.querySelectorAll("details[id]")].map(({ id, open }) => [id, open]);
    stood = here !== target && !here.id && target.contains(here) ? [here.localName, named(here)] : null;
  });
  document.addEventListener("htmx:afterSwap", ({ target }) => {
    for (const [id, open] of opened) {
      const found = document.getElementById(id);
      if (found) found.open = open;
    }
    if (stood && !target.contains(document.activeElement)) {
      [...target.querySelectorAll(stood[0])].find((element) => named(element) === stood[1])?.focus({ preventScroll: true });
    }
    opened = [];
    stood = null;
  });
})();
