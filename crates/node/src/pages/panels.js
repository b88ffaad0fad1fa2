// What the dashboard shows: each part is made once, and then told every moment.

import { card, el, fields, grouped, plural, quiet, say, shortened } from "./base.js";
import { bytes, charts, count, ms, percent, whole } from "./charts.js";

const mib = (number) => bytes(number * 2 ** 20);
const member = (id) => `r${id}`;
const orNone = (value, show) => (value === null || value === undefined ? "–" : show(value));

function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} days`;
}

/** Fills an element with what a moment tells; `show` tells the next ones, with the points of the past. */
export function open(main, moment) {
  const parts = [verdict(), alerts(), figures(), members(), history(moment), givenUp(), facts()];
  const [judged, alarms, cards, table, drawn, views, about] = parts.map((part) => part.node);
  main.replaceChildren(judged, cards, el("div", { class: "upper" }, alarms, table, views), drawn, about);
  main.setAttribute("aria-busy", "false");
  return { show: (now, points) => parts.forEach((part) => part.show(now, points)) };
}

function section(title, ...content) {
  return el("section", { "aria-label": title }, el("h2", {}, title), ...content);
}

/** A state in words, with a mark whose shape says the same. */
function state() {
  const node = el("span", { class: "state" });
  const put = (name, text) => {
    node.dataset.state = name;
    say(node, text);
  };
  return { node, put };
}

function verdict() {
  const ready = state();
  const more = el("p", { class: "quiet" });
  const show = ({ validator, network, progress }) => {
    const who = validator.learner ? "a learner" : `validator ${member(validator.id)}`;
    const sync = progress.syncing ? `, catching up from ${grouped(progress.sync.from)} to ${grouped(progress.sync.to)}` : "";
    if (validator.ready) ready.put("good", "Ready");
    else ready.put("bad", "Not ready");
    say(more, `as seen by ${who}${validator.signs || validator.learner ? "" : ", which does not sign"}${sync}; up for ${span(validator.uptime_s * 1000)}`);
    say(document.getElementById("network"), `${network.service} on network ${shortened(network.id)}, epoch ${network.epoch}, ${network.protocol} with ${network.scheme}`);
  };
  return { node: el("div", { class: "verdict" }, el("h1", {}, ready.node), more), show };
}

function figures() {
  const names = ["Height", "View", "Operations a second", "Decided within, p50", "Quorum", "Clients", "Disk free", "Processor"];
  const [height, view, operations, latency, quorum, clients, disk, processor] = names.map(card);
  const show = ({ progress, network, host, point, validator }) => {
    const behind = progress.decided - progress.executed;
    height.show(grouped(progress.decided), behind > 0 ? `${grouped(behind)} not yet executed` : "executed");
    view.show(grouped(progress.view), `${member(progress.leader)} leads`);
    operations.show(orNone(point, ({ operations_s: rate }) => whole(rate)), `${count(progress.operations)} in all`);
    latency.show(orNone(point?.decision_p50_ms, ms), `p99 ${orNone(point?.decision_p99_ms, ms)}`);
    const all = `${grouped(network.quorum)} of ${grouped(network.weight)} needed`;
    if (validator.learner) quorum.show("–", all);
    else quorum.show(`${grouped(progress.heard_weight)} heard`, all);
    clients.show(grouped(host.clients), `${bytes(point?.mempool_bytes ?? 0)} waiting`);
    disk.show(bytes(host.disk.free_bytes), host.disk.level === "enough" ? `${bytes(host.log_bytes)} of log` : `room is ${host.disk.level}`);
    processor.show(orNone(point?.cpu, percent), orNone(host.rss_mb, (size) => `${mib(size)} of memory`));
  };
  return { node: el("div", { class: "cards", role: "group", "aria-label": "Figures" }, [height, view, operations, latency, quorum, clients, disk, processor].map((each) => each.node)), show };
}

// ---- Alerts. New ones and those that are over are said aloud; the time that passes is not.

const LEVELS = { critical: "Critical", warning: "Warning", notice: "Note" };

function alerts() {
  const list = el("ul", { class: "alerts", id: "alerts" });
  const none = el("p", { class: "empty" }, "Nothing to do.");
  const items = new Map();
  const announce = (words) => say(document.getElementById("said"), words.join(". "));

  function item({ level, todo, what }) {
    const mark = state();
    mark.put(level, LEVELS[level]);
    const [words, since] = [el("p", { class: "what" }, what), el("span", { class: "quiet" })];
    return { node: el("li", { "data-level": level }, el("p", { class: "level" }, mark.node, since), words, el("p", { class: "todo" }, todo)), words, since };
  }

  function show({ alerts: now, at_ms: at }) {
    const names = new Set(now.map(({ name }) => name));
    const over = [...items.keys()].filter((name) => !names.has(name));
    const fresh = now.filter(({ name }) => !items.has(name));
    const ended = over.map((name) => `Over: ${items.get(name).words.textContent}`);
    over.forEach((name) => items.delete(name));
    fresh.forEach((alert) => items.set(alert.name, item(alert)));
    if (fresh.length + over.length > 0) {
      list.replaceChildren(...now.map((alert) => {
        items.get(alert.name).node.dataset.name = alert.name;
        return items.get(alert.name).node;
      }));
      announce([...fresh.map(({ level, what }) => `${LEVELS[level]}: ${what}`), ...ended]);
    }
    for (const { name, what, since_ms: since } of now) {
      say(items.get(name).words, what);
      say(items.get(name).since, `for ${span(at - since)}`);
    }
    none.hidden = now.length > 0;
    const worst = now.filter(({ level }) => level !== "notice").length;
    document.title = `${worst > 0 ? `▲ ${plural(worst, "alert")} · ` : ""}Quorate dashboard`;
  }

  return { node: section("Alerts", el("div", { class: "panel" }, list, none)), show };
}

// ---- Members.

const MEMBERS = ["Member", "State", ["Round trip", "number"], ["Votes", "number"], ["Last vote", "number wide"], ["Turns failed", "number"], ["Weight", "number wide"], ["Address", "wide"]];

/** What is seen of a member: of itself a validator has no contact, and a learner does not judge who is silent. */
function contactOf({ connected, silent, silence_s: silence }) {
  if (connected === undefined) return ["good", "this validator"];
  if (silent) return connected ? ["warning", `silent for ${whole(silence)} s`] : ["critical", `down for ${whole(silence)} s`];
  return connected ? ["good", "up"] : ["warning", "not connected"];
}

function members() {
  const body = el("tbody");
  const headings = MEMBERS.map((heading) => [heading].flat());
  const head = headings.map(([text, kind]) => el("th", { scope: "col", class: kind ?? null }, text));
  const rows = new Map();

  function row(id) {
    const cells = headings.map(([, kind], at) => el(at === 0 ? "th" : "td", { class: kind ?? null, scope: at === 0 ? "row" : null, "data-label": headings[at][0] }));
    const contact = state();
    const [name, tag] = [el("b", {}, member(id)), quiet("")];
    cells[0].append(name, " ", tag);
    cells[1].append(contact.node);
    return { node: el("tr", { "data-member": id }, cells), cells, contact, tag };
  }

  function show({ members: now, progress, given_up: views }) {
    for (const each of now) {
      if (!rows.has(each.id)) rows.set(each.id, row(each.id));
      const { cells, contact, tag } = rows.get(each.id);
      contact.put(...contactOf(each));
      say(tag, each.id === progress.leader ? "leads" : "");
      const failed = views.filter(({ leader }) => leader === each.id).length;
      const texts = [
        orNone(each.connected ? each.round_trip_ms : null, (trip) => `${trip.toFixed(trip < 10 ? 1 : 0)} ms`),
        each.certificates > 0 ? `${each.votes} of ${each.certificates}` : "–",
        lastVote(each),
        `${grouped(each.turns_failed)} of ${grouped(each.turns)}`,
        grouped(each.weight),
        each.address,
      ];
      texts.forEach((text, at) => say(cells[at + 2], text));
      cells[3].classList.toggle("bad", each.certificates > 0 && each.votes === 0);
      cells[5].title = failed > 0 ? `${failed} of the last ${plural(views.length, "view")} given up` : "";
    }
    for (const [id, { node }] of rows) if (!now.some((each) => each.id === id)) node.remove(), rows.delete(id);
    const wanted = now.map((each) => rows.get(each.id).node);
    if (wanted.length !== body.children.length || wanted.some((node, at) => node !== body.children[at])) body.replaceChildren(...wanted);
  }

  const note = el("p", { class: "quiet note" }, "Votes: certificates with its vote, of the last 100. Last vote: certificates since then. A member's own height is not known here.");
  const grid = el("table", { class: "members" }, el("thead", {}, el("tr", {}, head)), body);
  return { node: section("Members", el("div", { class: "scroll" }, grid), note), show };
}

function lastVote({ certificates, absences }) {
  if (certificates === 0) return "–";
  if (absences >= certificates) return `over ${absences} ago`;
  return absences === 0 ? "the last" : `${absences} ago`;
}

// ---- The last ten minutes.

const FAST_PATHS = ["sbft", "linear-pbft-fast"];

const valueOf = (field) => (typeof field === "function" ? field : (point) => point[field] ?? null);
const one = (field) => [{ of: valueOf(field), label: "", kind: "a" }];
const pair = (first, second) => [first, second].map(([field, label], at) => ({ of: valueOf(field), label, kind: "ab"[at] }));
const latencies = (name) => pair([`${name}_p50_ms`, "p50"], [`${name}_p99_ms`, "p99"]);
const rate = { show: whole, axis: count, unit: "a second", least: 4 };

function heightsOf(protocol) {
  if (FAST_PATHS.includes(protocol)) return ["Heights by path", { ...rate, series: pair(["fast_s", "fast"], ["slow_s", "slow"]) }];
  return ["Heights", { ...rate, series: one("heights_s") }];
}

/** A log that is not synced is written all the same. */
function logOf(durability) {
  if (durability === "os") return ["Log", { series: one("log_bytes_s"), show: bytes, base: 2, least: 4096, unit: "a second" }];
  return ["Log syncs", { ...rate, series: one("log_syncs_s") }];
}

function history({ network }) {
  const drawn = charts([
    ["Operations", { ...rate, series: one("operations_s") }],
    ["Decision time", { series: latencies("decision"), show: ms, least: 4 }],
    ["Answer time", { series: latencies("request"), show: ms, least: 4 }],
    heightsOf(network.protocol),
    ["Height", { series: one("height"), show: whole, axis: count, floats: true, least: 4 }],
    ["View", { series: one("view"), show: whole, axis: count, floats: true, least: 4 }],
    ["Views given up", { ...rate, series: one("given_up_s"), show: (value) => value.toFixed(1), axis: (value) => String(value), least: 2 }],
    ["Weight", { series: pair(["heard_weight", "heard"], [() => network.quorum, "needed"]), show: whole, axis: count, least: network.quorum + 1 }],
    logOf(network.durability),
    ["Processor", { series: one("cpu"), show: percent, least: 0.2 }],
    ["Memory", { series: one("rss_mb"), show: mib, base: 2, least: 64 }],
    ["Waits for", { series: pair(["mempool_bytes", "order"], ["outbox_bytes", "sending"]), show: bytes, base: 2, least: 4096 }],
  ]);
  return { node: section("The last ten minutes", drawn.note, drawn.node), show: ({ at_ms: at }, points) => drawn.show(points, at) };
}

// ---- Views and facts.

const REASONS = { timeout: "its leader brought about nothing in time", censorship: "its leader passed over what had long waited", slowness: "what it ordered had waited too long" };

function givenUp() {
  const list = el("ol", { class: "views" });
  const none = el("p", { class: "empty" }, "None since this validator started.");
  let last = null;
  const show = ({ given_up: views }) => {
    const newest = JSON.stringify(views);
    if (newest === last) return;
    last = newest;
    const item = ({ view, leader, reason }) => el("li", { title: REASONS[reason] ?? "" }, el("b", {}, member(leader)), ` view ${grouped(view)} `, quiet(reason));
    list.replaceChildren(...views.slice(-12).toReversed().map(item));
    list.hidden = views.length === 0;
    none.hidden = views.length > 0;
  };
  return { node: section("Views given up last, by their leaders", el("div", { class: "panel" }, list, none)), show };
}

function facts() {
  const node = el("div");
  let last = null;
  const show = (moment) => {
    const rows = factsOf(moment);
    const newest = JSON.stringify(rows);
    if (newest !== last) node.replaceChildren(fields(rows));
    last = newest;
  };
  return { node: section("This validator", node), show };
}

function factsOf({ validator, network, progress, host }) {
  const waiting = Object.entries(host.queues).map(([name, events]) => `${name} ${grouped(events)}`);
  return [
    ["Network", network.id],
    ["Epoch", `${grouped(network.epoch)}, rules of version ${grouped(network.execution_version)}`],
    ["Weight", validator.learner ? "none: a learner" : `${grouped(validator.weight)} of ${grouped(network.weight)}`],
    ["Durability", network.durability],
    ["Certified", `up to height ${grouped(progress.certified)}; the last certificate has ${bytes(progress.certificate_bytes)}`],
    ["Decided", progress.fast_decisions + progress.slow_decisions > 0 ? `${grouped(progress.fast_decisions)} on the fast path, ${grouped(progress.slow_decisions)} on the slow one` : null],
    ["Views given up", `${grouped(progress.view_changes)} since it started`],
    ["Kept", `from height ${grouped(host.oldest_height)} on, ${bytes(host.log_bytes)}`],
    ["Disk", `${bytes(host.disk.free_bytes)} free, low below ${bytes(host.disk.low_bytes)}`],
    ["Connected", `${plural(host.peers, "member")}, ${plural(host.clients, "client")}`],
    ["Queues", waiting.join(", ") || null],
    ["Version", validator.version],
  ];
}
