// The explorer that every validator serves: from the address bar to a page. Paths are those of EIP-3091.

import { el, quiet, say, utcSecond } from "./base.js";
import { addressPage, tokenPage } from "./accounts.js";
import { blockPage } from "./blocks.js";
import { committeePage } from "./committee.js";
import { copyOnClick, tickAges } from "./elements.js";
import { learnNames } from "./known.js";
import { overviewPage } from "./overview.js";
import { NotFound, Refused, TokenNeeded, Unreachable, ask, explained, keepToken } from "./rpc.js";
import { isAddress, isHash, isNumber } from "./text.js";
import { transactionPage } from "./transactions.js";

// ---- The search.

/** Finds out what was searched for and goes there. */
async function searchPage(text) {
  if (isNumber(text)) return goTo("block", text);
  const value = /^0x/i.test(text) ? text.toLowerCase() : `0x${text.toLowerCase()}`;
  if (isAddress(value)) return goTo("address", value);
  if (!isHash(value)) throw new NotFound(`“${text}” is not a block number, a hash of 32 bytes, or an address of 20 bytes.`);
  const [transaction, block] = await Promise.all([ask("eth_getTransactionByHash", value), ask("eth_getBlockByHash", value, false)]);
  if (transaction) return goTo("tx", value);
  if (block) return goTo("block", value);
  throw new NotFound(`This validator knows neither a transaction nor a block with the hash ${value}.`);
}

function goTo(page, argument) {
  navigate(`/${page}/${argument}`, "replaceState");
  return null;
}

// ---- From the address bar to a page.

const PAGES = new Map([
  ["", overviewPage],
  ["block", blockPage],
  ["tx", transactionPage],
  ["address", addressPage],
  ["token", tokenPage],
  ["committee", committeePage],
  ["search", searchPage],
]);

const main = document.getElementById("main");
const trouble = document.getElementById("trouble");
let visit = 0;
let shown = null;
let busy = false;
let silentSince = null;

/** Links of earlier versions name a page after a #. */
function takeEarlierLink() {
  if (location.hash.startsWith("#/")) history.replaceState(null, "", location.hash.slice(1));
}

function wanted() {
  const [name, argument = ""] = location.pathname.slice(1).split("/");
  try {
    return [name, decodeURIComponent(argument)];
  } catch {
    return [name, argument];
  }
}

/** Goes to a page of this site, with an entry of its own in the browser's history or without. */
function navigate(path, how = "pushState") {
  history[how](null, "", path);
  arrive();
}

function arrive() {
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
  route();
}

async function open(name, argument) {
  const page = PAGES.get(name);
  if (!page) throw new NotFound("There is no such page.");
  await names();
  return page(argument, route);
}

let learnt = null;

/** Names of functions and events, learnt once; again where the validator did not answer. */
function names() {
  learnt ??= learnNames().catch((failure) => {
    learnt = null;
    throw failure;
  });
  return learnt;
}

/** Shows what the address bar asks for, unless it asks for something else by then. */
async function route() {
  const mine = ++visit;
  const [name, argument] = wanted();
  main.setAttribute("aria-busy", "true");
  const view = await open(name, argument).catch(failurePage);
  if (mine === visit && view) show(view, name);
}

function show(view, name) {
  shown = view;
  document.title = `${view.title} · Quorate`;
  document.querySelectorAll("nav [data-page]").forEach((each) => each.setAttribute("aria-current", each.dataset.page === name ? "page" : "false"));
  main.replaceChildren(...view.body.flat(Infinity));
  main.setAttribute("aria-busy", "false");
  heard();
}

function failurePage(failure) {
  if (failure instanceof NotFound) return { title: "Not found", body: [el("h1", {}, "Not found"), el("p", {}, failure.message)] };
  if (failure instanceof Unreachable) return { title: "No answer", body: [el("h1", {}, "This validator does not answer"), el("p", { class: "quiet" }, "The page asks again every second.")], refresh: route };
  if (failure instanceof TokenNeeded) return accessPage(failure);
  if (!(failure instanceof Refused)) console.error(failure);
  return { title: "Failed", body: [el("h1", {}, "This page could not be made"), el("p", {}, explained(failure))] };
}

/** Asks for the token, which stays in this tab and goes to this validator alone. */
function accessPage(failure) {
  const input = el("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: "" });
  const keep = (event) => {
    event.preventDefault();
    keepToken(input.value.trim());
    route();
    offerDashboard();
  };
  const label = el("label", { for: "token" }, "Token");
  const form = el("form", { class: "token", submit: keep }, label, input, el("button", {}, "Show the chain"));
  const said = `${explained(failure)}. Whoever runs it makes one by quorate token add. It is kept until this tab is closed.`;
  return { title: "Token", body: [el("h1", {}, "This validator asks for a token"), el("p", {}, said), form] };
}

function heard() {
  silentSince = null;
  trouble.hidden = true;
}

function notHeard(failure) {
  silentSince ??= Date.now();
  const what = failure instanceof Unreachable ? `This validator has not answered since ${utcSecond(silentSince)}` : explained(failure);
  say(trouble, `${what}. What is shown may be old; the page asks again every second.`);
  trouble.hidden = false;
}

async function everySecond() {
  if (document.hidden || busy) return;
  tickAges();
  const view = shown;
  if (!view?.refresh) return;
  busy = true;
  try {
    await view.refresh();
    if (view === shown) heard();
  } catch (failure) {
    if (view === shown && failure instanceof TokenNeeded) show(accessPage(failure), "");
    else if (view === shown) notHeard(failure);
  }
  busy = false;
}

const LOOPBACK = /^(localhost|127\..*|\[::1\])$/;

/** Links to the dashboard of the validator beside this server, where this browser can reach it by the address that it listens on. */
async function linkDashboard() {
  const { dashboard } = await ask("quorate_committee");
  const url = new URL(dashboard);
  if (LOOPBACK.test(url.hostname) && !LOOPBACK.test(location.hostname)) return;
  if (["0.0.0.0", "[::]"].includes(url.hostname)) url.hostname = location.hostname;
  const anchor = document.getElementById("dashboard");
  anchor.href = url;
  anchor.hidden = false;
}

/** Without an answer there is no link; the page says that there is no answer. */
function offerDashboard() {
  linkDashboard().catch(() => {});
}

document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = document.getElementById("query");
  const text = query.value.trim();
  if (text) navigate(`/search/${encodeURIComponent(text)}`);
  query.value = "";
});

document.addEventListener("click", copyOnClick);

/** Links to pages of this site are followed without loading anew, unless another window or tab is wanted. */
document.addEventListener("click", (event) => {
  const anchor = event.target.closest("a[href]");
  if (!anchor || event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const { origin, pathname } = new URL(anchor.href);
  if (origin !== location.origin || !PAGES.has(pathname.slice(1).split("/")[0])) return;
  event.preventDefault();
  navigate(pathname);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, textarea")) return;
  event.preventDefault();
  document.getElementById("query").focus();
});

/** Another tab was given an ABI. */
addEventListener("storage", () => {
  learnt = null;
});

addEventListener("popstate", arrive);
addEventListener("hashchange", () => {
  takeEarlierLink();
  arrive();
});

document.addEventListener("visibilitychange", everySecond);
setInterval(everySecond, 1000);
takeEarlierLink();
route();
offerDashboard();
