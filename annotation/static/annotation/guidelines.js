// The guidelines stand open beside the question until somebody closes them, which this browser remembers; where there is
// no room beside it they are closed. Without this file they open by their heading.
"use strict";

const guidelinesPanel = (() => {
  const PLACE = "guidelines";
  const room = window.matchMedia("(min-width: 64rem)");
  const panel = () => document.getElementById("guidelines");

  function remembered() {
    try {
      return localStorage.getItem(PLACE);
    } catch {
      return null;
    }
  }

  function remember(choice) {
    try {
      localStorage.setItem(PLACE, choice);
    } catch {
      // A browser that keeps nothing shows them open each time.
    }
  }

  function start() {
    if (panel()) panel().open ||= room.matches && remembered() !== "closed";
  }

  // A press, by the key or a pointer; what closes by itself is nobody's choice.
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("#guidelines > summary")) return;
    if (room.matches) remember(panel().open ? "closed" : "open");
  });
  room.addEventListener("change", () => {
    if (panel()) panel().open = room.matches && remembered() !== "closed";
  });
  start();

  return { standing: (details) => details.id === PLACE && room.matches };
})();
