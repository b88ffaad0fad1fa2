// What the pages that validators serve have in common: numbers and times as text, elements, cards and tables.

// ---- Numbers and times as text.

export const grouped = (quantity) => BigInt(quantity).toLocaleString("en");
export const plural = (number, thing) => `${grouped(number)} ${thing}${number === 1 ? "" : "s"}`;
export const shortened = (value) => (value.length > 22 ? `${value.slice(0, 10)}…${value.slice(-8)}` : value);

export function utc(ms) {
  if (!(Math.abs(ms) <= 8.64e15)) return "beyond the calendar";
  return new Date(ms).toISOString().replace("T", " ").replace(/(\.000)?Z$/, " UTC");
}

export const utcSecond = (ms) => utc(ms).replace(/\.\d+/, "");

export function ago(ms) {
  const seconds = Math.floor((Date.now() - ms) / 1000);
  if (seconds < 1) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${plural(Math.floor(seconds / 86400), "day")} ago`;
}

// ---- Elements. What comes from a validator reaches a page as text only.

/** An element. Functions become listeners; children may be text, elements, lists of them, or nothing. */
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value !== null && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export const quiet = (text) => el("span", { class: "quiet" }, text);

export function fields(rows) {
  const present = rows.filter(([, content]) => content !== null && content !== undefined);
  return el("dl", { class: "fields" }, present.map(([label, content]) => el("div", {}, el("dt", {}, label), el("dd", {}, content))));
}

export function card(label) {
  const value = el("b");
  const note = el("p");
  return {
    node: el("div", { class: "card" }, el("h2", {}, label), value, note),
    show(text, more = "") {
      say(value, text);
      say(note, more);
    },
  };
}

export function filledCard(label, text, more) {
  const made = card(label);
  made.show(text, more);
  return made.node;
}

/**
 * A table whose rows are known by their items' keys: rows that stay are left alone.
 * A column is its heading, or the heading and a class.
 */
export function table(columns, cellsOf, empty) {
  const classes = columns.map((column) => (Array.isArray(column) ? column[1] : null));
  const headings = columns.map((column, at) => el("th", { scope: "col", class: classes[at] }, [column].flat()[0]));
  const body = el("tbody");
  const grid = el("table", {}, el("thead", {}, el("tr", {}, headings)), body);
  const nothing = el("p", { class: "empty" }, empty);
  const rows = new Map();

  function rowOf(item) {
    if (!rows.has(item.key)) rows.set(item.key, el("tr", {}, cellsOf(item).map((cell, at) => el("td", { class: classes[at] }, cell))));
    return rows.get(item.key);
  }

  function show(items) {
    const kept = new Set(items.map((item) => item.key));
    for (const [key, row] of rows) {
      if (kept.has(key)) continue;
      row.remove();
      rows.delete(key);
    }
    let at = body.firstChild;
    for (const row of items.map(rowOf)) {
      if (row === at) at = at.nextSibling;
      else body.insertBefore(row, at);
    }
    grid.hidden = items.length === 0;
    nothing.hidden = items.length > 0;
  }

  show([]);
  return { node: el("div", { class: "scroll" }, grid, nothing), show };
}

export function filledTable(columns, cellsOf, items, empty) {
  const made = table(columns, cellsOf, empty);
  made.show(items);
  return made.node;
}

