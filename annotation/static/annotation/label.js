// Keys, focus, and what to say when something fails. The page works without this file.
"use strict";

(() => {
  // A second click meant for the last question must not answer one nobody has read yet.
  const TOO_SOON_MS = 300;
  const WRITING = "textarea, select, input:not([type=radio], [type=checkbox])";
  let shownAt = -Infinity;

  const byId = (id) => document.getElementById(id);
  const tooSoon = () => performance.now() - shownAt < TOO_SOON_MS;
  const answerAddress = () => byId("answer")?.getAttribute("action");

  function announce(text) {
    byId("announcement").textContent = text;
  }

  function shortcut(key) {
    const known = [...document.querySelectorAll("main [data-shortcut]")];
    const meant = known.filter((element) => element.dataset.shortcut.split(" ").includes(key));
    // A key that answers never does anything else.
    return meant.find((element) => !element.dataset.zoom) || meant[0];
  }

  function toggle(summary) {
    const details = summary.parentElement;
    // A click, so that whoever listens for one hears of the key, too.
    summary.click();
    const inside = details.open && (details.querySelector("[data-first]") || details.querySelector("button"));
    (inside || summary).focus();
  }

  function closeAll() {
    for (const details of document.querySelectorAll("details[open]")) {
      if (!guidelinesPanel.standing(details)) details.open = false;
    }
    zoom.toggle(false);
    byId("question")?.focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.key === "Escape") return closeAll();
    const command = event.shiftKey && /^\p{L}$/u.test(event.key);
    if (event.target.closest(WRITING) && !(finder.isIn(event.target) && command)) return;
    if (finder.takes(event)) return;
    if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
    const names = keys.names(event);
    const element = names.map(shortcut).find(Boolean);
    if (!element) {
      if (command && names.some(finder.keyed)) event.preventDefault();
      return;
    }
    event.preventDefault();
    if (element.tagName === "SUMMARY") toggle(element);
    else element.click();
  });

  document.addEventListener(
    "click",
    (event) => {
      if (event.target.closest?.(".zoom")) {
        event.preventDefault();
        zoom.toggle();
        return;
      }
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

  // A long question scrolls in its frame, by keys too.
  function frame() {
    const question = byId("question");
    if (question && question.scrollHeight > question.clientHeight) question.tabIndex = 0;
  }

  function arrived(answered) {
    frame();
    shownAt = performance.now();
    zoom.start();
    byId("question").focus({ preventScroll: true });
    if (byId("work").getBoundingClientRect().top < 0) byId("work").scrollIntoView();
    const words = byId("announcement").dataset;
    announce(byId("notice")?.textContent || (!byId("answer") ? words.empty : answered ? words.saved : words.next));
  }

  // Before the new question is painted.
  document.addEventListener("htmx:afterSwap", () => {
    finder.start();
    spans.start();
  });

  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.id !== "work") return;
    const { requestConfig, xhr } = event.detail;
    arrived(requestConfig?.elt?.id === "answer" && xhr.status < 400);
  });

  function show(text) {
    const holder = document.createElement("template");
    holder.innerHTML = text;
    const fresh = holder.content.querySelector("#work");
    byId("work").replaceWith(fresh);
    htmx.process(fresh);
    finder.start();
    spans.start();
    arrived(true);
  }

  function complain(text) {
    const problem = byId("problem");
    problem.textContent = text;
    problem.hidden = false;
    problem.scrollIntoView({ block: "nearest" });
  }

  function explain(text, status) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const reason = page.querySelector("[data-reason]")?.textContent.trim();
    complain(reason || byId("announcement").dataset.failed);
    if (status === 409 || status === 404) offerNext();
  }

  function keepAnswer(request) {
    if (request?.elt?.id !== "answer") return false;
    outbox.keep(request.path, request.parameters);
    complain(byId("announcement").dataset.offline);
    return true;
  }

  for (const name of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, (event) => {
      const request = event.detail.requestConfig;
      // The empty page asks again by itself in a few seconds.
      if (request?.verb === "get" || keepAnswer(request)) return;
      complain(byId("announcement").dataset.failed);
    });
  }

  // Perhaps somebody else is signed in by now: an answer waits for its owner, anything else is theirs to try again.
  function refused(request, text, status) {
    if (request?.elt?.id === "answer") {
      outbox.keep(request.path, request.parameters);
      outbox.send();
    } else {
      outbox.ownerIsHere().then((here) => here && explain(text, status));
    }
  }

  function somebodyElse() {
    byId("work").replaceWith(byId("somebody-else").content.cloneNode(true));
    byId("others").replaceChildren();
    byId("guidelines-place").replaceChildren();
    // It bears the name of who was here before, and its buttons would act for who is here now.
    document.querySelector(".menu")?.remove();
    byId("question").focus({ preventScroll: true });
  }

  document.addEventListener("htmx:responseError", (event) => {
    const request = event.detail.requestConfig;
    const { status, responseText } = event.detail.xhr;
    if (request?.verb === "get" || (status >= 500 && keepAnswer(request))) return;
    if (status === 403 || status === 404) return refused(request, responseText, status);
    outbox.forget(request.path);
    explain(responseText, status);
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful && event.detail.requestConfig.elt.id === "answer") {
      outbox.forget(event.detail.requestConfig.path);
    }
  });

  finder.start();
  frame();
  outbox.start(
    (address, text) => {
      if (address === answerAddress()) show(text);
      announce(byId("announcement").dataset.sent);
    },
    (address, text, status) => explain(text, status),
    somebodyElse,
  );

  function offerNext() {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = byId("announcement").dataset.onward;
    byId("problem").append(" ", link);
  }
})();
