// Ticks all boxes of a list at once, or none of them where all are ticked. Without scripts no button is shown.
"use strict";

for (const button of document.querySelectorAll("[data-tick]")) {
  const boxes = [...document.querySelectorAll(`input[type=checkbox][name="${CSS.escape(button.dataset.tick)}"]`)];
  const say = () => {
    button.textContent = boxes.every((box) => box.checked) ? button.dataset.none : button.dataset.all;
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    const ticked = !boxes.every((box) => box.checked);
    for (const box of boxes) box.checked = ticked;
    say();
  });
  for (const box of boxes) box.addEventListener("change", say);
  // A browser that comes back to the page ticks what was ticked.
  say();
}
