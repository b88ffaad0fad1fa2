// Charts of the last ten minutes, drawn as SVG. All share one time axis and one cursor.

import { el, say } from "./base.js";

const SPAN = 600_000; // Milliseconds that a chart shows.
const GAP = 3_500; // Points further apart are not joined: nothing is known of what is between.
const HEIGHT = 128;
const LEFT = 46; // Least room for the numbers of the vertical axis.
const DIGIT = 6.3; // Width of one of their digits.
const BOTTOM = 18;
const TOP = 6;
const RIGHT = 6;
const STEP = 5_000; // Milliseconds that an arrow key moves the cursor.

const TIMES = [
  [SPAN, "start", "10 min ago"],
  [SPAN / 2, "middle", "5 min"],
  [0, "end", "now"],
];

const NAMESPACE = "http://www.w3.org/2000/svg";

function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// ---- Numbers with their units.

const UNITS = {
  count: [1000, ["", " k", " M", " G", " T"]],
  bytes: [1024, [" B", " KiB", " MiB", " GiB", " TiB"]],
};

/** A number with three digits or so, and a letter for thousands. */
function scaled(value, kind) {
  const [base, names] = UNITS[kind];
  let at = 0;
  let size = Math.abs(value);
  while (size >= base && at < names.length - 1) {
    size /= base;
    at += 1;
  }
  const whole = Number.isInteger(size) || size >= 100;
  const digits = whole ? 0 : size >= 10 ? 1 : 2;
  return `${(Math.sign(value) * size).toFixed(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")}${names[at]}`;
}

export const count = (value) => scaled(value, "count");
export const bytes = (value) => scaled(value, "bytes");
export const whole = (value) => Math.round(value).toLocaleString("en");
export const ms = (value) => (value >= 1000 ? `${(value / 1000).toFixed(value >= 10_000 ? 0 : 1)} s` : `${value.toFixed(value >= 10 || value === 0 ? 0 : 1)} ms`);
export const percent = (value) => `${Math.round(value * 100)} %`;

/** Round numbers that cover a range in two to four steps. */
function ticksOf(low, high, base) {
  const width = high - low || 1;
  const unit = base ** Math.floor(Math.log(width / 3) / Math.log(base));
  const factors = base === 10 ? [1, 2, 5, 10] : [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
  const step = unit * factors.find((factor) => width / (unit * factor) <= 3.2);
  const first = Math.floor(low / step) * step;
  const ticks = [];
  for (let tick = first; ticks.length < 8; tick += step) {
    ticks.push(tick);
    if (tick >= high) break;
  }
  return ticks;
}

// ---- One chart.

/**
 * A chart of the points. Each of `series` has `of`, which gives a point's value, a label and a class (`a`, `b`); `show` prints a value,
 * `least` is the smallest upper end of the axis, and `floats` has the axis begin with the smallest value instead of zero.
 */
function chart(title, { series, show, axis = show, base = 10, least = 1, floats = false, unit = "" }, shared) {
  const legends = series.map(({ label, kind }) => ({ node: el("span", { class: `legend ${kind}` }, label ? `${label} ` : ""), value: el("b") }));
  legends.forEach(({ node, value }) => node.append(value));
  const picture = svg("svg", { height: HEIGHT, "aria-hidden": "true" });
  const heading = el("h3", {}, title, unit ? el("small", {}, ` ${unit}`) : "");
  const node = el("figure", { class: "chart", tabindex: "0", role: "group", "aria-label": title }, el("figcaption", {}, heading, el("span", { class: "legends" }, legends.map((each) => each.node))), picture);

  let left = LEFT;

  const moment = ({ clientX }) => {
    const { left: edge, width } = picture.getBoundingClientRect();
    const part = (clientX - edge - left) / (width - left - RIGHT);
    return part >= 0 && part <= 1 ? shared.end - SPAN * (1 - part) : null;
  };
  node.addEventListener("pointermove", (event) => shared.point(moment(event)));
  node.addEventListener("pointerleave", () => shared.point(null));
  node.addEventListener("blur", () => shared.point(null));
  node.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -STEP, ArrowRight: STEP, Home: -SPAN, End: SPAN }[event.key];
    if (event.key === "Escape") shared.point(null);
    if (!steps) return;
    event.preventDefault();
    const from = shared.cursor ?? shared.end;
    shared.point(Math.min(shared.end, Math.max(shared.end - SPAN, from + steps)));
  });

  function axisOf(points) {
    let [low, high] = floats ? [Infinity, -Infinity] : [0, least];
    for (const point of points)
      for (const { of } of series) {
        const value = of(point);
        if (value === null) continue;
        if (value > high) high = value;
        if (value < low) low = value;
      }
    if (low > high) [low, high] = [0, least];
    if (floats && high - low < least) high = low + least;
    return ticksOf(low, high, base);
  }

  /** Short numbers, or whole ones where those would not tell ticks apart. */
  function numbersOf(ticks) {
    const short = ticks.map((tick) => axis(tick));
    return new Set(short).size === short.length ? short : ticks.map((tick) => show(tick));
  }

  function lines({ of, kind }, points, x, y, ground) {
    let line = "";
    let last = null;
    const runs = [];
    for (const point of points) {
      const value = of(point);
      if (value === null) {
        last = null;
        continue;
      }
      const joined = last !== null && point.at_ms - last <= GAP;
      const place = `${x(point.at_ms).toFixed(1)} ${y(value).toFixed(1)}`;
      line += joined ? `L${place}` : `M${place}h.1`;
      if (!joined) runs.push({ first: x(point.at_ms), places: [] });
      runs.at(-1).places.push(place);
      runs.at(-1).end = x(point.at_ms);
      last = point.at_ms;
    }
    const drawn = [];
    if (kind === "a" && !floats) {
      const areas = runs.map((run) => `M${run.first.toFixed(1)} ${ground}L${run.places.join("L")}L${run.end.toFixed(1)} ${ground}z`);
      drawn.push(svg("path", { class: "area", d: areas.join("") }));
    }
    drawn.push(svg("path", { class: `line ${kind}`, d: line }));
    return drawn;
  }

  function draw(points) {
    const width = picture.clientWidth || 320;
    const ground = HEIGHT - BOTTOM;
    const ticks = axisOf(points);
    const [low, high] = [ticks[0], ticks.at(-1)];
    const numbers = numbersOf(ticks);
    left = Math.max(LEFT, 8 + DIGIT * Math.max(...numbers.map((text) => text.length)));
    const x = (at) => left + ((at - shared.end + SPAN) / SPAN) * (width - left - RIGHT);
    const y = (value) => ground - ((value - low) / (high - low)) * (ground - TOP);
    const grid = ticks.map((tick, at) => [
      svg("line", { class: tick === low ? "ground" : "rule", x1: left, x2: width - RIGHT, y1: y(tick), y2: y(tick) }),
      svg("text", { x: left - 6, y: y(tick) + 3.5, "text-anchor": "end" }, numbers[at]),
    ]);
    const times = TIMES.map(([ago, anchor, text]) => svg("text", { x: x(shared.end - ago), y: HEIGHT - 4, "text-anchor": anchor }, text));
    const cursor = shared.cursor === null ? [] : [svg("line", { class: "cursor", x1: x(shared.cursor), x2: x(shared.cursor), y1: TOP, y2: ground })];
    picture.replaceChildren(...grid.flat(), ...series.toReversed().flatMap((each) => lines(each, points, x, y, ground)), ...times, ...cursor);
    const told = shared.cursor === null ? points.at(-1) : shared.near(points);
    series.forEach(({ of }, at) => {
      const value = told ? of(told) : null;
      say(legends[at].value, value === null ? "–" : show(value));
    });
  }

  return { node, draw };
}

// ---- All of them.

/** Charts by title, with one cursor: where it is, their legends tell the values of that second. */
export function charts(wanted) {
  const shared = {
    end: 0,
    cursor: null,
    point(at) {
      if (at === this.cursor) return;
      this.cursor = at;
      drawAll();
    },
    near(points) {
      let best = null;
      for (const point of points) if (!best || Math.abs(point.at_ms - this.cursor) < Math.abs(best.at_ms - this.cursor)) best = point;
      return best && Math.abs(best.at_ms - this.cursor) <= GAP ? best : null;
    },
  };
  const note = el("p", { class: "quiet", id: "cursor" });
  let known = [];
  const all = wanted.map(([title, given]) => chart(title, given, shared));

  function drawAll() {
    const at = shared.cursor;
    const back = at === null ? 0 : Math.round((shared.end - at) / 1000);
    say(note, at === null ? "The last ten minutes, as this validator measured them. Point at a chart, or use the arrow keys, to read one second." : `${new Date(at).toISOString().slice(11, 19)} UTC, ${back} s ago`);
    all.forEach((each) => each.draw(known));
  }

  let due = false;
  addEventListener("resize", () => {
    if (!due) requestAnimationFrame(() => ((due = false), drawAll()));
    due = true;
  });

  return {
    node: el("div", { class: "charts" }, all.map((each) => each.node)),
    note,
    show(points, end) {
      known = points;
      shared.end = end;
      drawAll();
    },
  };
}

export const SPAN_MS = SPAN;
