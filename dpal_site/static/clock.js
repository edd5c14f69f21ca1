// Tells the site in which time zone the person reads, so that it writes times as their clock shows them.
"use strict";

(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = document.cookie.split("; ").some((cookie) => cookie.startsWith("timezone="));
  if (zone && !known) document.cookie = `timezone=${zone}; path=/; max-age=31536000; samesite=lax`;
})();
