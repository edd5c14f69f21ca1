// Answers that could not be sent: kept in this browser until the site has them. Nothing of a record is kept, only the
// address of the question, the number of the class and the key that makes a second arrival the same answer.
"use strict";

const outbox = (() => {
  const FIRST_RETRY_MS = 2000;
  const LAST_RETRY_MS = 15000;
  let wait = FIRST_RETRY_MS;
  let timer = null;
  let sending = false;
  let onStored = () => {};
  let onRefused = () => {};

  // Another person at the same browser must not send them.
  const place = () => `dpal-unsent-${document.getElementById("announcement").dataset.person}`;

  function read() {
    try {
      return JSON.parse(localStorage.getItem(place())) || {};
    } catch {
      return {};
    }
  }

  function write(kept) {
    try {
      if (Object.keys(kept).length) localStorage.setItem(place(), JSON.stringify(kept));
      else localStorage.removeItem(place());
    } catch {
      // A browser that may store nothing still has the page, which keeps the choice.
    }
  }

  function forget(url) {
    const kept = read();
    delete kept[url];
    write(kept);
  }

  function later() {
    clearTimeout(timer);
    timer = setTimeout(send, wait);
    wait = Math.min(2 * wait, LAST_RETRY_MS);
  }

  function keep(url, choice, key) {
    write({ ...read(), [url]: { choice, key } });
    later();
  }

  async function post(url, { choice, key }) {
    const token = document.querySelector("[name=csrfmiddlewaretoken]")?.value;
    return fetch(url, {
      method: "POST",
      headers: { "X-CSRFToken": token, "HX-Request": "true", "HX-Current-URL": location.href },
      body: new URLSearchParams({ choice, key }),
    });
  }

  async function sendOne(url, answer) {
    const response = await post(url, answer);
    const login = response.headers.get("HX-Redirect");
    if (login) {
      location.assign(login);
      return false;
    }
    if (response.status >= 500) return false;
    forget(url);
    const text = await response.text();
    if (response.ok) onStored(url, text);
    else onRefused(url, text, response.status);
    return true;
  }

  async function send() {
    clearTimeout(timer);
    const unsent = Object.entries(read());
    if (!unsent.length || sending) return;
    sending = true;
    let done = true;
    try {
      for (const [url, answer] of unsent) done = (await sendOne(url, answer)) && done;
    } catch {
      done = false;
    }
    sending = false;
    if (done) wait = FIRST_RETRY_MS;
    else later();
  }

  window.addEventListener("online", send);

  return {
    keep,
    forget,
    start(stored, refused) {
      onStored = stored;
      onRefused = refused;
      send();
    },
  };
})();
