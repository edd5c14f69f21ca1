// Shows the tab one is on, where a narrow window shows only the first few.
"use strict";

document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// Shows one part of a page at a time; without this file the links lead to the parts below one another.
const parts = [...document.querySelectorAll("section.part")];

function showPart() {
  const named = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
  const shown = parts.find((part) => named && part.contains(named)) ?? parts[0];
  for (const part of parts) part.hidden = part !== shown;
  for (const link of document.querySelectorAll(".parts a")) {
    if (link.hash === `#${shown.id}`) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  if (named && named !== shown) named.scrollIntoView();
}

if (parts.length) {
  showPart();
  addEventListener("hashchange", showPart);
}
