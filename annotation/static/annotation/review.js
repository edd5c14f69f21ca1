// Keys of the review page, which works without them.
"use strict";

(() => {
  const WRITING = "textarea, input:not([type=radio], [type=checkbox])";

  function choose(key) {
    const place = (Number(key) + 9) % 10;
    const select = document.querySelector("#decide select");
    // The first option chooses none.
    if (select && place + 1 < select.options.length) select.selectedIndex = place + 1;
    document.querySelector(`#decide [data-type][data-shortcut="${key}"]`)?.click();
    document.querySelectorAll("#decide [name=choice][type=checkbox]")[place]?.click();
  }

  function toggle(summary) {
    const details = summary.parentElement;
    details.open = !details.open;
    ((details.open && details.querySelector("[name=comment]")) || summary).focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.key === "Escape") {
      for (const details of document.querySelectorAll("details[open]")) details.open = false;
      return;
    }
    if (event.target.closest(WRITING)) return;
    if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
    const named = (name) => document.querySelector(`main [data-shortcut="${CSS.escape(name)}"]`);
    const [key, ...others] = keys.names(event);
    const meant = [key, ...others].map(named).find(Boolean);
    if (/^\d$/.test(key)) choose(key);
    else if (!meant) return;
    else if (meant.tagName === "SUMMARY") toggle(meant);
    else meant.click();
    event.preventDefault();
  });
})();
