// Outages, stalls, faults and incidents of all ports and jobs on one clock, from 30 days to 1 s.

import { now } from "./clock.js";

const HOUR = 3600000;
const SHORTEST = 1000;
const LONGEST = 30 * 24 * HOUR;
const NEWS_MS = 1000;
const ROW = 22;
const TOP = 20;
const SPANS = [["24 h", 24 * HOUR], ["1 h", HOUR], ["10 min", 600000], ["1 min", 60000], ["1 s", 1000]];
const HELP = "Arrow keys left and right move it, plus and minus zoom, up and down go from one mark to the next, Enter opens it.";

const area = document.getElementById("timeline");
const seesJobs = document.body.dataset.jobs === "yes";
const began = Date.parse(area.dataset.since ?? "");
const ended = Date.parse(area.dataset.until ?? "");
const view = { from: 0, to: 0, follows: false };
const loaded = { from: 0, to: 0, partly: false, marks: [] };
let rows = [];
let chosen = null;
let dragged = null;
let asking = null;
let waiting = 0;
let news = 0;

// ---- the marks -----------------------------------------------------------------------------

function markOf([kind, row, from, sureFrom, sureTo, to, text, href]) {
  return { kind, row, from, sureFrom, sureTo, to, text, href };
}

// Half as much again is loaded on either side, so that moving a little asks for nothing. Where
// that is more than the agent tells at once, which are the newest, only what is in view counts as
// loaded, and it is asked for alone where later marks took its place.
async function load(margin = (view.to - view.from) / 2) {
  const [first, last] = [view.from, view.to];
  const [from, to] = [Math.max(0, first - margin), last + margin];
  asking?.abort();
  const mine = asking = new AbortController();
  try {
    const asked = new URLSearchParams({ since: new Date(from).toISOString(), until: new Date(to).toISOString() });
    const answer = await fetch(`/timeline?${asked}`, { signal: mine.signal });
    if (!answer.ok) throw new Error(answer.statusText);
    const found = await answer.json();
    const marks = found.marks.map(markOf);
    if (found.partly && margin > 0 && marks.some((one) => one.from > last)) return await load(0);
    Object.assign(loaded, { ...(found.partly ? { from: first, to: last } : { from, to }), marks, partly: found.partly });
    if (chosen) chosen = marks.find((one) => one.href === chosen.href && one.from === chosen.from) ?? null;
    name();
    resize();
    area.dataset.marks = marks.length;
  } catch (error) {
    if (error.name !== "AbortError") tell(`The timeline could not be read: ${error.message}`);
  }
  return undefined;
}

function name() {
  const ports = [...document.querySelectorAll("[data-port]")].map((one) => one.dataset.port);
  const marked = loaded.marks.map((one) => one.row);
  rows = [...new Set([...ports, ...marked])].sort((a, b) => a.startsWith("job") - b.startsWith("job"));
}

// ---- the picture ---------------------------------------------------------------------------

const tools = document.createElement("div");
const plot = document.createElement("div");
const canvas = document.createElement("canvas");
const said = document.createElement("output");
const pen = canvas.getContext("2d");

const labels = () => Math.min(150, Math.max(76, canvas.clientWidth * 0.16));
const x = (at) => labels() + ((at - view.from) / (view.to - view.from)) * (canvas.clientWidth - labels());
const timeAt = (px) => view.from + ((px - labels()) / (canvas.clientWidth - labels())) * (view.to - view.from);
const colour = (token) => getComputedStyle(document.documentElement).getPropertyValue(`--${token}`).trim();

function resize() {
  const height = TOP + ROW * Math.max(1, rows.length) + 4;
  const ratio = devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(plot.clientWidth * ratio);
  canvas.height = Math.round(height * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw();
}

function draw() {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  drawGrid(width, height);
  rows.forEach((row, place) => {
    pen.fillStyle = colour("text");
    pen.fillText(shortened(row, labels() - 12), 6, TOP + ROW * place + ROW / 2);
  });
  pen.save();
  pen.beginPath();
  pen.rect(labels(), 0, width - labels(), height);
  pen.clip();
  const place = new Map(rows.map((row, at) => [row, TOP + ROW * at]));
  const paint = Object.fromEntries(["outage", "unsure", "stall", "fault", "incident"].map((one) => [one, colour(one)]));
  for (const mark of loaded.marks) drawMark(mark, place.get(mark.row), paint);
  if (chosen) frame(chosen, place.get(chosen.row));
  if (dragged && !dragged.moves) shade(dragged.at, dragged.last, height);
  pen.restore();
}

// What a job is called is anybody's text.
function shortened(text, width) {
  let shown = text.replace(/\p{C}/gu, "\ufffd").slice(0, 40);
  if (shown === text && pen.measureText(shown).width <= width) return shown;
  while (shown && pen.measureText(`${shown}\u2026`).width > width) shown = shown.slice(0, -1);
  return `${shown}\u2026`;
}

function drawMark(mark, y, paint) {
  const end = mark.to ?? now();
  if (end < view.from || mark.from > view.to) return;
  pen.fillStyle = paint[mark.kind];
  if (mark.kind === "incident") {
    bar(mark.from, end, y + 3, 3);
  } else if (mark.kind === "fault") {
    pen.beginPath();
    pen.moveTo(x(mark.from), y + 7);
    pen.lineTo(x(mark.from) + 4, y + ROW - 3);
    pen.lineTo(x(mark.from) - 4, y + ROW - 3);
    pen.fill();
  } else if (mark.kind === "stall") {
    bar(mark.from, end, y + 8, 7);
  } else {
    pen.fillStyle = paint.unsure;
    bar(mark.from, end, y + 4, ROW - 8);
    pen.fillStyle = paint.outage;
    const sureTo = mark.sureTo ?? now();
    if (sureTo >= mark.sureFrom) bar(mark.sureFrom, sureTo, y + 4, ROW - 8);
  }
}

function bar(from, to, y, height) {
  const left = x(Math.max(from, view.from - 1));
  pen.fillRect(left, y, Math.max(2, x(Math.min(to, view.to)) - left), height);
}

function frame(mark, y) {
  pen.strokeStyle = colour("text");
  pen.lineWidth = 2;
  const left = x(mark.from);
  pen.strokeRect(left - 3, y + 1, Math.max(8, x(mark.to ?? now()) - left + 6), ROW - 2);
}

function shade(from, to, height) {
  pen.globalAlpha = 0.25;
  pen.fillStyle = colour("link");
  pen.fillRect(Math.min(from, to), 0, Math.abs(to - from), height);
  pen.globalAlpha = 1;
}

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800].map((s) => s * 1000);

function drawGrid(width, height) {
  const most = Math.max(2, Math.floor((width - labels()) / 90));
  const step = STEPS.find((one) => (view.to - view.from) / one <= most) ?? STEPS.at(-1);
  pen.strokeStyle = colour("line");
  pen.fillStyle = colour("quiet");
  pen.lineWidth = 1;
  pen.beginPath();
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const px = Math.round(x(at)) + 0.5;
    pen.moveTo(px, TOP - 4);
    pen.lineTo(px, height);
    if (px + 30 < width) pen.fillText(tick(at, step), px + 3, TOP / 2);
  }
  for (let place = 0; place <= rows.length; place += 1) {
    pen.moveTo(0, TOP + ROW * place + 0.5);
    pen.lineTo(width, TOP + ROW * place + 0.5);
  }
  pen.stroke();
}

function tick(at, step) {
  const written = new Date(at).toISOString();
  if (step >= 24 * HOUR) return written.slice(5, 10);
  if (step >= 60000) return written.slice(11, 16);
  return written.slice(11, step >= 1000 ? 19 : 21);
}

// ---- moving --------------------------------------------------------------------------------

function show(from, to, follows = false) {
  const middle = (from + to) / 2;
  const width = Math.min(LONGEST, Math.max(SHORTEST, to - from));
  Object.assign(view, { from: middle - width / 2, to: middle + width / 2, follows });
  tellSpan();
  draw();
  clearTimeout(waiting);
  const inside = view.from >= loaded.from && view.to <= loaded.to;
  const wide = loaded.partly && loaded.to - loaded.from > 3 * width;
  if (!inside || wide) waiting = setTimeout(() => load(), 150);
}

const zoom = (factor, at = (view.from + view.to) / 2) => show(at - (at - view.from) * factor, at + (view.to - at) * factor);
const pan = (share) => show(view.from + (view.to - view.from) * share, view.to + (view.to - view.from) * share);

function latest(width) {
  if (Number.isNaN(began)) {
    show(now() - width * 0.98, now() + width * 0.02, true);
  } else if (width === SPANS[0][1]) {
    show(began, Number.isNaN(ended) ? now() : ended);
  } else {
    const middle = chosen?.from ?? (view.from + view.to) / 2;
    show(middle - width / 2, middle + width / 2);
  }
}

function tellSpan() {
  const digits = view.to - view.from < 60000 ? 23 : 19;
  const written = (at) => new Date(at).toISOString().slice(0, digits).replace("T", " ");
  const local = new Date().getTimezoneOffset() === 0 ? "" : `, local ${new Date(view.from).toLocaleString("sv-SE")} to ${new Date(view.to).toLocaleString("sv-SE")}`;
  const partly = loaded.partly ? " Only the newest marks of this span are drawn: zoom in for all." : "";
  document.getElementById("timeline-span").textContent = `${written(view.from)} to ${written(view.to)} UTC${local}.${partly}`;
}

function tell(text) {
  if (said.textContent !== text) said.textContent = text;
}

function choose(mark) {
  chosen = mark;
  if (mark.from < view.from || mark.from > view.to) pan((mark.from - (view.from + view.to) / 2) / (view.to - view.from));
  tell(`${new Date(mark.from).toISOString().replace("T", " ").replace("Z", " UTC")}: ${mark.row} ${mark.text}`);
  draw();
}

function step(by) {
  if (!loaded.marks.length) return tell("There is no mark here.");
  const shown = loaded.marks.findIndex((one) => one.from >= view.from);
  const place = chosen ? loaded.marks.indexOf(chosen) + by : by > 0 ? Math.max(0, shown) : loaded.marks.length - 1;
  return choose(loaded.marks[Math.min(loaded.marks.length - 1, Math.max(0, place))]);
}

function open(mark) {
  if (mark?.href) location.assign(mark.href);
}

function markAt(event) {
  const box = canvas.getBoundingClientRect();
  const [px, py] = [event.clientX - box.left, event.clientY - box.top];
  const row = rows[Math.floor((py - TOP) / ROW)];
  const near = (one) => Math.max(0, x(one.from) - px, px - x(one.to ?? now()));
  const rank = (one) => (one.kind === "incident" ? 3 : 0) + near(one);
  const there = loaded.marks.filter((one) => one.row === row && near(one) <= 5);
  return there.sort((a, b) => rank(a) - rank(b))[0];
}

const KEYS = {
  ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
  ArrowUp: () => step(-1), ArrowDown: () => step(1), Home: () => latest(SPANS[0][1]), Enter: () => open(chosen),
};

function listen() {
  plot.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (sideways) pan((event.deltaX || event.deltaY) / canvas.clientWidth);
    else zoom(1.0015 ** event.deltaY, timeAt(event.offsetX));
  }, { passive: false });
  canvas.addEventListener("dblclick", () => latest(SPANS[0][1]));
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    dragged = { at: event.offsetX, last: event.offsetX, moves: event.pointerType === "touch" || event.shiftKey, mark: markAt(event) };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!dragged) return hover(event);
    const before = dragged.last;
    dragged.last = event.offsetX;
    return dragged.moves ? pan((before - dragged.last) / (canvas.clientWidth - labels())) : draw();
  });
  canvas.addEventListener("pointerup", () => {
    const { at, last, moves, mark } = dragged ?? {};
    dragged = null;
    if (Math.abs(last - at) < 4) return open(mark);
    return moves ? draw() : show(timeAt(Math.max(labels(), Math.min(at, last))), timeAt(Math.max(at, last)));
  });
  canvas.addEventListener("pointercancel", () => { dragged = null; draw(); });
}

function hover(event) {
  const mark = markAt(event);
  canvas.style.cursor = mark?.href ? "pointer" : "crosshair";
  if (mark && mark !== chosen) choose(mark);
}

function build() {
  tools.className = "tools";
  const all = Number.isNaN(began) ? SPANS : [["All", SPANS[0][1]], ...SPANS.slice(2)];
  const buttons = [
    ...all.map(([text, width]) => [text, () => latest(width)]),
    ["Zoom in", () => zoom(0.5)], ["Zoom out", () => zoom(2)], ["Earlier", () => pan(-0.5)], ["Later", () => pan(0.5)],
  ];
  for (const [text, act] of buttons) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
    button.addEventListener("click", act);
    tools.append(button);
  }
  Object.assign(plot, { className: "plot", tabIndex: 0 });
  plot.setAttribute("role", "application");
  plot.setAttribute("aria-label", `Timeline of ports and jobs. ${HELP}`);
  canvas.setAttribute("aria-hidden", "true");
  plot.append(canvas);
  const key = document.createElement("div");
  key.className = "key";
  const kinds = [["outage", "outage"], ["unsure", "may have been down"], ...(seesJobs ? [["stall", "stall"], ["fault", "fault"], ["incident", "incident"]] : [])];
  for (const [kind, text] of kinds) {
    const entry = Object.assign(document.createElement("span"), { className: kind });
    entry.append(Object.assign(document.createElement("b"), { textContent: text }));
    key.append(entry);
  }
  area.append(tools, plot, key, said);
}

build();
listen();
latest(SPANS[0][1]);
clearTimeout(waiting);
load();
new ResizeObserver(resize).observe(plot);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.addEventListener("news", () => {
  news ||= setTimeout(() => { news = 0; load(); }, NEWS_MS); // a storm of events must not put it off for ever
});
setInterval(() => {
  if (document.hidden || dragged) return;
  if (view.follows) latest(view.to - view.from);
  else if (loaded.marks.some((one) => one.to === null)) draw();
}, 1000);
