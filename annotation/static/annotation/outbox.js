// Answers that could not be sent: kept in this browser until the site has them. Nothing of a record is kept, only the
// address of the question, the number of the class or places of spans, and the key that makes a second arrival the same
// answer.
"use strict";

const outbox = (() => {
  const FIRST_RETRY_MS = 2000;
  const LAST_RETRY_MS = 15000;
  let wait = FIRST_RETRY_MS;
  let timer = null;
  let sending = false;
  let onStored = () => {};
  let onRefused = () => {};
  let onSomebodyElse = () => {};
  // Whose page this is: another person may sign in at the same browser while it stays open.
  const owner = document.body.dataset.person;

  // Another person at the same browser must neither send nor lose them.
  const place = () => `dpal-unsent-${owner}`;

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

  // Of several classes a list; of none of them nothing, and the box that says so; of spans their places and types.
  function keep(url, { choice, none, spans, key }) {
    write({ ...read(), [url]: { choice, none, spans, key } });
    later();
  }

  async function post(url, { choice = [], none, spans, key }) {
    const body = new URLSearchParams({ key });
    for (const one of [choice].flat()) body.append("choice", one);
    if (none) body.append("none", none);
    if (spans) body.append("spans", spans);
    const token = document.querySelector("[name=csrfmiddlewaretoken]")?.value;
    return fetch(url, {
      method: "POST",
      headers: { "X-CSRFToken": token, "HX-Request": "true", "HX-Current-URL": location.href },
      body,
    });
  }

  // After somebody signed in, the token of this page is void; only the owner of the page gets the new one.
  async function ownerIsHere() {
    const response = await fetch(location.pathname, { cache: "no-store" });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const { person } = page.body.dataset;
    if (!person) {
      location.assign(response.url);
      return false;
    }
    if (person !== owner) {
      clearTimeout(timer);
      onSomebodyElse();
      return false;
    }
    const token = page.querySelector("[name=csrfmiddlewaretoken]")?.value;
    for (const input of document.querySelectorAll("[name=csrfmiddlewaretoken]")) input.value = token;
    return true;
  }

  async function sendOne(url, answer) {
    let response = await post(url, answer);
    // Refused, or not theirs: the answer is given up only if it was its owner who sent it.
    if (response.status === 403 || response.status === 404) {
      if (!(await ownerIsHere())) return "gone";
      if (response.status === 403) response = await post(url, answer);
    }
    const login = response.headers.get("HX-Redirect");
    if (login) {
      location.assign(login);
      return "gone";
    }
    if (response.status >= 500 || response.status === 403) return "later";
    forget(url);
    const text = await response.text();
    if (response.ok) onStored(url, text);
    else onRefused(url, text, response.status);
    return "done";
  }

  async function send() {
    clearTimeout(timer);
    const unsent = Object.entries(read());
    if (!unsent.length || sending) return;
    sending = true;
    const ends = new Set();
    try {
      for (const [url, answer] of unsent) {
        const end = await sendOne(url, answer);
        ends.add(end);
        if (end === "gone") break;
      }
    } catch {
      ends.add("later");
    }
    sending = false;
    if (ends.has("later")) later();
    else wait = FIRST_RETRY_MS;
  }

  window.addEventListener("online", send);

  return {
    keep,
    forget,
    send,
    ownerIsHere,
    start(stored, refused, somebodyElse) {
      onStored = stored;
      onRefused = refused;
      onSomebodyElse = somebodyElse;
      send();
    },
  };
})();
