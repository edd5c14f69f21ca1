// Keys, focus and what to say when something fails. The page works without this file.
"use strict";

(() => {
  // A second click meant for the last question must not answer one nobody has read yet.
  const TOO_SOON_MS = 300;
  let shownAt = -Infinity;

  const byId = (id) => document.getElementById(id);
  const tooSoon = () => performance.now() - shownAt < TOO_SOON_MS;

  function announce(text) {
    byId("announcement").textContent = text;
  }

  function shortcut(key) {
    return [...document.querySelectorAll("main [data-shortcut]")].find((element) => element.dataset.shortcut === key);
  }

  function toggle(summary) {
    const details = summary.parentElement;
    details.open = !details.open;
    const inside = details.open && details.querySelector("button");
    (inside || summary).focus();
  }

  function closeAll() {
    for (const details of document.querySelectorAll("details[open]")) details.open = false;
    byId("question")?.focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.closest("input, textarea, select")) return;
    if (event.key === "Escape") return closeAll();
    const element = shortcut(event.key.toLowerCase());
    if (!element) return;
    event.preventDefault();
    if (element.tagName === "SUMMARY") toggle(element);
    else element.click();
  });

  document.addEventListener(
    "click",
    (event) => {
      const button = event.target.closest?.("#work button");
      if (!button) return;
      if (tooSoon()) {
        event.preventDefault();
        event.stopImmediatePropagation();
      } else if (button.name === "choice") {
        for (const other of document.querySelectorAll(".choice")) other.removeAttribute("aria-pressed");
        button.setAttribute("aria-pressed", "true");
      }
    },
    true,
  );

  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.id !== "work") return;
    shownAt = performance.now();
    const question = byId("question");
    question.focus({ preventScroll: true });
    if (byId("work").getBoundingClientRect().top < 0) byId("work").scrollIntoView();
    const words = byId("announcement").dataset;
    announce(byId("answer") ? words.next : words.empty);
  });

  function complain(text) {
    const problem = byId("problem");
    problem.textContent = text;
    problem.hidden = false;
    problem.scrollIntoView({ block: "nearest" });
  }

  for (const name of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, (event) => {
      // The empty page asks again by itself in a few seconds.
      if (event.detail.requestConfig?.verb !== "get") complain(byId("announcement").dataset.offline);
    });
  }

  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.requestConfig?.verb === "get") return;
    const page = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
    const reason = page.querySelector("[data-reason]")?.textContent.trim();
    complain(reason || byId("announcement").dataset.failed);
    if (event.detail.xhr.status === 409 || event.detail.xhr.status === 404) offerNext();
  });

  function offerNext() {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = byId("announcement").dataset.onward;
    byId("problem").append(" ", link);
  }
})();
