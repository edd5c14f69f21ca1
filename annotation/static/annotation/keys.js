// Names of a pressed key, the likeliest first: digits by their place in the row, as AZERTY and Czech write other signs
// there and Arabic other digits; letters as they are printed, and by their place where the layout has no Latin ones.
"use strict";

const keys = (() => {
  function digit(event) {
    const place = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
    const plain = event.code?.startsWith("Digit") && !event.shiftKey;
    return place && (plain || /^\p{Nd}$/u.test(event.key)) ? place[1] : null;
  }

  function names(event) {
    const place = /^Key([A-Z])$/.exec(event.code);
    const letter = place && /^(?!\p{Script=Latin})\p{L}$/u.test(event.key) ? place[1].toLowerCase() : null;
    return [digit(event), event.key.toLowerCase(), letter].filter((name) => name !== null);
  }

  return { digit, names };
})();
