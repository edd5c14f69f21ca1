// The picture closer up: by buttons, keys, wheel and two fingers, within its frame. Without this file it opens alone.
"use strict";

const zoom = (() => {
  const MOST = 8;
  const STEP = 1.5;
  const ENLARGED = 2.5;
  let scale = 1;
  // How wide the whole picture is shown, in pixels of the page.
  let whole = 0;
  let fingers = null;

  function shown() {
    const question = document.querySelector("#question.picture");
    if (!question) return null;
    return { question, frame: question.querySelector(".frame"), link: question.querySelector(".zoom") };
  }

  // Enlarged, the frame is wider than it was and may begin elsewhere.
  function inFrame(frame, at) {
    const box = frame.getBoundingClientRect();
    return at ? { x: at.x - box.left, y: at.y - box.top } : { x: frame.clientWidth / 2, y: frame.clientHeight / 2 };
  }

  // What lies under `at`, else in the middle, stays there.
  function show(wanted, at) {
    const parts = shown();
    if (!parts) return;
    const { question, frame, link } = parts;
    const from = inFrame(frame, at);
    if (!question.classList.contains("enlarged")) {
      scale = 1;
      whole = link.getBoundingClientRect().width;
    }
    const next = Math.min(MOST, Math.max(1, wanted));
    const x = (frame.scrollLeft + from.x - link.offsetLeft) / link.offsetWidth;
    const y = (frame.scrollTop + from.y - link.offsetTop) / link.offsetHeight;
    const large = next > 1.01;
    scale = large ? next : 1;
    question.classList.toggle("enlarged", large);
    link.style.width = large ? `${Math.round(whole * scale)}px` : "";
    frame.tabIndex = large ? 0 : -1;
    const to = inFrame(frame, at);
    frame.scrollLeft = x * link.offsetWidth + link.offsetLeft - to.x;
    frame.scrollTop = y * link.offsetHeight + link.offsetTop - to.y;
    question.querySelector("output").textContent = `${Math.round(100 * scale)}\u00a0%`;
  }

  // The arrow keys move what has the focus.
  function focus() {
    const { question, frame } = shown();
    if (document.activeElement?.closest(".zooming")) return;
    (question.classList.contains("enlarged") ? frame : question).focus({ preventScroll: true });
  }

  function toggle(large = scale === 1) {
    if (!shown()) return;
    show(large ? ENLARGED : 1);
    focus();
  }

  function start() {
    scale = 1;
    fingers = null;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-zoom]");
    if (!button) return;
    show({ in: scale * STEP, out: scale / STEP, whole: 1 }[button.dataset.zoom]);
    focus();
  });

  document.addEventListener(
    "wheel",
    (event) => {
      const frame = event.target.closest?.("#question.picture .frame");
      // Two fingers on a touchpad come as a wheel with this key; without it the frame scrolls.
      if (!frame || !event.ctrlKey) return;
      event.preventDefault();
      show(scale * Math.exp(-event.deltaY / 100), { x: event.clientX, y: event.clientY });
    },
    { passive: false },
  );

  const apart = ([one, other]) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);

  document.addEventListener(
    "touchstart",
    (event) => {
      const frame = event.target.closest?.("#question.picture .frame");
      if (!frame || event.touches.length !== 2) return;
      event.preventDefault();
      fingers = { apart: apart(event.touches), scale };
    },
    { passive: false },
  );

  document.addEventListener(
    "touchmove",
    (event) => {
      if (!fingers || event.touches.length !== 2) return;
      event.preventDefault();
      const [one, other] = event.touches;
      const at = { x: (one.clientX + other.clientX) / 2, y: (one.clientY + other.clientY) / 2 };
      show((fingers.scale * apart(event.touches)) / fingers.apart, at);
    },
    { passive: false },
  );

  for (const name of ["touchend", "touchcancel"]) document.addEventListener(name, () => (fingers = null));

  // The label page has keys of its own, and asks for these.
  if (!document.getElementById("work")) {
    const keys = { "+": "in", "=": "in", "-": "out", 0: "whole" };
    document.addEventListener("keydown", (event) => {
      // What else has keys on the page, as a review does, takes its own first.
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest("input, select, textarea")) return;
      if (event.key === "Escape") toggle(false);
      else if (event.key.toLowerCase() === "z") toggle();
      else if (event.key in keys) document.querySelector(`[data-zoom="${keys[event.key]}"]`)?.click();
    });
    document.addEventListener("click", (event) => {
      if (!event.target.closest?.("#question .zoom")) return;
      event.preventDefault();
      toggle();
    });
  }

  return { start, toggle };
})();
