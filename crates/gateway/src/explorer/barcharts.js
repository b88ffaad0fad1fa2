// Bars of a figure of the last blocks, one a block.

import { el, grouped } from "./base.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const HEIGHT = 70;
const WIDTH = 8; // Of a bar with the gap beside it.

function svg(name, attributes, ...children) {
  const node = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** Bars of so many blocks; `of` gives a block's figure, which `unit` follows. */
export function barChart(title, count, of, unit) {
  const picture = svg("svg", { viewBox: `0 0 ${count * WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
  const most = el("b");
  const node = el("figure", { class: "bars" }, el("figcaption", {}, title, el("span", { class: "quiet" }, "at most ", most)), picture);

  function bar(block, at, highest) {
    const value = of(block);
    const height = value === 0 ? 1 : Math.max(2, (value / highest) * (HEIGHT - 2));
    const place = { x: at * WIDTH, y: HEIGHT - height, width: WIDTH - 2, height, class: value === 0 ? "none" : "some" };
    return svg("rect", place, svg("title", {}, `Block ${block.number}: ${grouped(value)} ${unit}`));
  }

  /** Draws blocks, newest first, with the newest at the right. */
  function show(blocks) {
    const highest = Math.max(1, ...blocks.map(of));
    most.textContent = grouped(highest === 1 && blocks.every((block) => of(block) === 0) ? 0 : highest);
    picture.setAttribute("aria-label", `${title}, at most ${most.textContent}`);
    picture.replaceChildren(...blocks.slice(0, count).map((block, back) => bar(block, count - 1 - back, highest)));
  }

  return { node, show };
}
