// Tells the site in which time zone the person reads, so that it writes times as their clock shows them.
"use strict";

(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  // Of such a name a browser takes a cookie from this very host alone; without TLS it takes none.
  const [name, safe] = location.protocol === "https:" ? ["__Host-timezone", "; secure"] : ["timezone", ""];
  const known = document.cookie.split("; ").some((cookie) => cookie.startsWith(`${name}=`));
  if (zone && !known) document.cookie = `${name}=${zone}; path=/; max-age=31536000; samesite=lax${safe}`;
})();
