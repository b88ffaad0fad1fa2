// Elements of the explorer's pages. What comes from the chain reaches them as text only.

import { ago, el, quiet, say, shortened, utc } from "./base.js";
import { explained } from "./rpc.js";
import { checksummed } from "./text.js";

export const link = (page, argument, text) => el("a", { href: `/${page}/${argument}` }, text);

/** Bytes in one line, with a button that copies all of them; linked if `page` names where to. */
export function bytes(value, page = null, text = value) {
  const shown = page ? link(page, value, text) : el("span", {}, text);
  shown.className = "value";
  shown.title = value;
  return el("span", { class: "hash" }, shown, el("button", { type: "button", class: "copy", title: "Copy", "aria-label": `Copy ${shortened(value)}`, "data-copy": value }));
}

export const brief = (value, page) => bytes(value, page, shortened(value));

/** An address with its checksum, linked to its page. */
export const account = (address) => bytes(checksummed(address), "address");
export const briefAccount = (address) => brief(checksummed(address), "address");

export const age = (ms) => el("time", { datetime: utc(ms), title: utc(ms), "data-ms": ms }, ago(ms));
export const moment = (ms) => (ms > 0 ? [`${utc(ms)} (`, age(ms), ")"] : "not set");

export function tickAges() {
  document.querySelectorAll("time[data-ms]").forEach((time) => say(time, ago(Number(time.dataset.ms))));
}

export function raw(name, value) {
  return el("details", {}, el("summary", {}, name), el("pre", { tabindex: 0 }, JSON.stringify(value, null, 2)));
}

/** Label and content, one pair under the other. */
export const pairs = (all) => el("div", { class: "arguments" }, all.map(([label, content]) => [el("span", {}, label), el("span", {}, content)]));

/** Adds what `next` gives (`items`, a `note`, whether there is `more`) to the table whenever the button is pressed. */
export async function growing(made, next, order = null) {
  const items = [];
  const note = quiet("");
  const button = el("button", { type: "button", click: grow }, "Show more");

  async function grow() {
    button.disabled = true;
    try {
      const page = await next();
      items.push(...page.items);
      made.show(order ? items.toSorted(order) : items);
      say(note, page.note ?? "");
      button.hidden = !page.more;
    } catch (failure) {
      say(note, explained(failure));
    }
    button.disabled = false;
  }

  await grow();
  return [made.node, el("div", { class: "more" }, button, note)];
}

/** Parts of a page of which one is shown, made when it is asked for first. A part is its name, its heading and what makes it. */
export async function tabs(parts) {
  const buttons = parts.map(([name, heading]) => el("button", { type: "button", role: "tab", id: `tab-${name}`, click: () => choose(name, true) }, heading));
  const panel = el("div", { role: "tabpanel", class: "panel" });
  const made = new Map();
  let wanted = null;

  async function choose(name, isAsked) {
    wanted = name;
    buttons.forEach((button) => button.setAttribute("aria-selected", button.id === `tab-${name}`));
    if (isAsked) history.replaceState(null, "", `${location.pathname}?tab=${name}`);
    const [, , make] = parts.find((part) => part[0] === name);
    if (!made.has(name)) made.set(name, await make().catch((failure) => [el("p", { class: "quiet" }, explained(failure))]));
    if (wanted !== name) return;
    panel.replaceChildren(...[made.get(name)].flat(Infinity).filter(Boolean));
    panel.setAttribute("aria-labelledby", `tab-${name}`);
  }

  const asked = new URLSearchParams(location.search).get("tab");
  await choose(parts.some(([name]) => name === asked) ? asked : parts[0][0], false);
  return [el("div", { class: "tabs", role: "tablist" }, buttons), panel];
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyBySelection(text); // Browsers keep the clipboard from pages that come without TLS.
  }
}

function copyBySelection(text) {
  const area = el("textarea", { class: "hidden" }, text);
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** Has a button of `bytes` copy what it is for. */
export async function copyOnClick({ target }) {
  const button = target.closest(".copy");
  if (!button) return;
  await copy(button.dataset.copy);
  button.classList.add("done");
  document.getElementById("said").textContent = "Copied";
  setTimeout(() => button.classList.remove("done"), 1200);
}
