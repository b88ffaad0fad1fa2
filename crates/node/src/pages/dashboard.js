// The dashboard that every validator serves: what it sees, second by second, from its /events, and from nobody else.

import { el, say, utcSecond } from "./base.js";
import { SPAN_MS } from "./charts.js";
import { open } from "./panels.js";

const VERSION = 1;
const RETRY = [0, 1_000, 2_000, 4_000]; // Milliseconds before each attempt to connect; the last one repeats.
const LATE = 3_000; // Milliseconds without an event after which the page says so.
const DEAF = 15_000; // And after which it connects anew: a validator sends a sign of life every ten seconds.
const TOKEN = "quorate-token";

const byId = (id) => document.getElementById(id);
const main = byId("main");

// ---- The connection.

class Refused extends Error {}
class TokenNeeded extends Error {}

/** Reads events until they end. Each has a name and data. */
async function listen(heard, signal) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const response = await fetch("events", { headers, signal, cache: "no-store" });
  if (response.status === 401) throw new TokenNeeded();
  if (!response.ok) throw await refusal(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    heard(events.map(parsed));
  }
}

function parsed(text) {
  const lines = text.split("\n").map((line) => line.split(/: ?(.*)/s));
  return Object.fromEntries(lines.map(([name, value]) => [name, value]));
}

async function refusal(response) {
  const { error } = await response.json().catch(() => ({}));
  const failure = new Refused(error ?? `the validator answers with ${response.status}`);
  failure.wait = Number(response.headers.get("retry-after")) * 1000 || null;
  return failure;
}

const connection = { attempt: 0, askedAt: 0, heardAt: Date.now(), reason: "", stop: null };

async function connect() {
  const control = new AbortController();
  connection.stop = () => control.abort();
  connection.askedAt = Date.now();
  let wait = null;
  try {
    await listen(heard, control.signal);
    connection.reason = "";
  } catch (failure) {
    if (failure instanceof TokenNeeded) return askForToken();
    wait = failure.wait;
    connection.reason = failure instanceof Refused ? failure.message : "";
  }
  wait ??= RETRY[Math.min(connection.attempt, RETRY.length - 1)];
  connection.attempt += 1;
  showConnection();
  setTimeout(connect, wait);
}

function heard(events) {
  connection.heardAt = Date.now();
  for (const { event, data } of events) {
    if (event === "history") takeHistory(JSON.parse(data));
    if (event === "moment") takeMoment(JSON.parse(data));
  }
}

/** A stream that ended and was taken up again at once is no loss. */
function showConnection() {
  const { askedAt, heardAt, reason } = connection;
  const isLost = Date.now() - heardAt > LATE;
  const live = byId("live");
  const [mark, word] = isLost ? ["bad", "not connected"] : known ? ["good", "live"] : ["wait", "connecting"];
  live.dataset.state = mark;
  say(live, word);
  say(byId("trouble"), isLost ? `Not connected since ${utcSecond(heardAt)}${reason && `: ${reason}`}. What is shown is old; the page tries again by itself.` : "");
  byId("trouble").hidden = !isLost;
  main.classList.toggle("old", isLost);
  if (Date.now() - Math.max(askedAt, heardAt) > DEAF) connection.stop();
}

/** A validator may want a token, as for /status; it is kept until the tab closes. */
function askForToken() {
  const wrong = sessionStorage.getItem(TOKEN) !== null;
  sessionStorage.removeItem(TOKEN);
  known = null; // Nothing of before is shown, and no second page beside the question.
  const input = el("input", { id: "token", type: "password", autocomplete: "off", required: "" });
  const submit = (event) => {
    event.preventDefault();
    sessionStorage.setItem(TOKEN, input.value.trim());
    main.replaceChildren();
    page = null;
    connect();
  };
  say(byId("live"), "locked");
  byId("trouble").hidden = true;
  main.classList.remove("old");
  main.replaceChildren(
    el("form", { class: "card token", submit }, el("label", { for: "token" }, "This validator shows its status to whoever has a token with the right to read."), input, el("button", {}, "Show"), wrong ? el("p", { class: "bad" }, "This token is not taken.") : null),
  );
  main.setAttribute("aria-busy", "false");
  input.focus();
}

// ---- What was heard.

let points = [];
let known = null;
let page = null;

/** What the page saw itself stays where the validator does not know it, as after a restart. */
function takeHistory({ version, fields: names, points: rows }) {
  if (version !== VERSION) location.reload(); // Another program serves this address now.
  const past = rows.map((row) => Object.fromEntries(row.map((value, at) => [names[at], value])));
  const first = past.length > 0 ? past[0].at_ms : Infinity;
  points = [...points.filter((point) => point.at_ms < first), ...past];
}

function takeMoment(moment) {
  if (moment.point && moment.point.at_ms > (points.at(-1)?.at_ms ?? 0)) points.push(moment.point);
  points = points.filter((point) => point.at_ms > moment.at_ms - SPAN_MS);
  known = moment;
  connection.attempt = 0;
  if (!document.hidden) show();
}

function show() {
  if (!known) return;
  page ??= open(main, known);
  page.show(known, points);
  showConnection();
}

// ---- Time that passes.

setInterval(() => {
  if (!document.hidden && !byId("token")) showConnection();
}, 1000);

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) show();
});

connect();
