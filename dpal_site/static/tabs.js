// Shows the tab one is on, where a narrow window shows only the first few.
"use strict";

document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
