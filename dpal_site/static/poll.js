// What a page asks for again and again is not asked for while nobody sees the page; it goes on once it is seen again.
"use strict";

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && !event.detail.requestConfig.triggeringEvent) event.preventDefault();
});
