// Keeps the page as the server would write it now, says when it cannot, and adds local times.

import { now } from "./clock.js";

const STREAM_KINDS = ["port", "flap", "fault", "stall", "job", "incident", "gap"];
const RECONNECT_MS = 3000;
const REFRESH_MS = 1000;
const SHARE = 20; // between refreshes pass so many times what one took: looking must not load the agent
const LONGEST_PAUSE_MS = 15000;
const IDLE_MS = document.getElementById("ring") ? 2000 : LONGEST_PAUSE_MS; // the ring tells no events
const TWO = "2-digit";
const LOCAL = new Intl.DateTimeFormat("sv-SE", { // the locale that writes dates as ISO 8601 does
  year: "numeric", month: TWO, day: TWO, hour: TWO, minute: TWO, second: TWO, timeZoneName: "short",
});
const connection = document.getElementById("connection");

let stream = null;
let lostSince = null;
let refreshing = false;
let wanted = false;
let lastRefresh = performance.now();
let pause = REFRESH_MS;
let reopening = 0;

function clock(date) {
  return date.toISOString().slice(11, 19) + " UTC";
}

function tellLost() {
  if (lostSince === null) lostSince = new Date(now());
  const text = `Connection to the agent lost at ${clock(lostSince)}: what is shown is as of then. Trying again.`;
  if (connection.textContent !== text) connection.textContent = text;
}

function tellFound() {
  lostSince = null;
  if (connection.textContent) connection.textContent = "";
}

function localTime(at) {
  const [date, clock, zone] = LOCAL.format(at).split(" ");
  return date === at.toISOString().slice(0, 10) ? `${clock} ${zone}` : `${date} ${clock} ${zone}`;
}

function addLocalTimes(root) {
  if (new Date().getTimezoneOffset() === 0) return;
  for (const time of root.querySelectorAll("time:not([data-told])")) {
    const at = new Date(time.dateTime);
    time.dataset.told = "";
    if (Number.isNaN(at.getTime())) continue;
    const local = document.createElement("small");
    local.className = "local";
    local.textContent = localTime(at);
    time.append(local);
  }
}

// What is open, and where the focus is, stays as it is.
function replace(part, fresh) {
  addLocalTimes(fresh);
  if (part.innerHTML === fresh.innerHTML) return;
  const open = [...part.querySelectorAll("details")].map((one) => one.open);
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const place = focused ? [...part.querySelectorAll(focused.tagName)].indexOf(focused) : -1;
  const charts = part.querySelector("[data-charts]");
  const freshCharts = fresh.querySelector("[data-charts]");
  if (charts && freshCharts) {
    Object.assign(charts.dataset, freshCharts.dataset);
    freshCharts.replaceWith(charts);
  }
  part.replaceChildren(...fresh.childNodes);
  part.querySelectorAll("details").forEach((one, i) => { one.open = open[i] ?? one.open; });
  if (place >= 0) part.querySelectorAll(focused.tagName)[place]?.focus({ preventScroll: true });
  part.querySelector("[data-charts]")?.dispatchEvent(new Event("charts", { bubbles: true }));
}

async function refresh() {
  wanted = true;
  if (refreshing || document.hidden) return;
  refreshing = true;
  while (wanted) {
    const wait = lastRefresh + pause - performance.now();
    if (wait > 0) await new Promise((done) => setTimeout(done, wait));
    wanted = false;
    const began = performance.now();
    await fetchPage();
    lastRefresh = performance.now();
    pause = Math.min(LONGEST_PAUSE_MS, Math.max(REFRESH_MS, SHARE * (lastRefresh - began)));
  }
  refreshing = false;
}

async function fetchPage() {
  try {
    const answer = await fetch(location.pathname + location.search, {
      headers: { Accept: "text/html" }, signal: AbortSignal.timeout(10000),
    });
    if (!answer.ok) throw new Error(answer.statusText);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = fresh.title;
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(part.id);
      if (other) replace(part, other);
    }
    if (stream?.readyState === EventSource.OPEN) tellFound();
  } catch {
    tellLost();
  }
}

function openStream() {
  clearTimeout(reopening);
  stream?.close();
  stream = new EventSource("/api/v1/stream");
  stream.onopen = () => {
    document.body.dataset.streaming = "yes";
    refresh(); // what happened meanwhile; the page itself tells everything, so nothing is resumed
  };
  stream.onerror = () => {
    delete document.body.dataset.streaming;
    tellLost();
    if (stream.readyState === EventSource.CLOSED) reopening = setTimeout(openStream, RECONNECT_MS);
  };
  for (const kind of STREAM_KINDS) {
    stream.addEventListener(kind, () => {
      refresh();
      document.dispatchEvent(new Event("news"));
    });
  }
}

function closeStream() {
  clearTimeout(reopening);
  stream?.close();
  stream = null;
}

async function copied(area) {
  area.select();
  try {
    await navigator.clipboard.writeText(area.value);
    return true;
  } catch { // browsers give the clipboard to https alone
    return document.execCommand("copy");
  }
}

async function copy(button) {
  const isLink = "copyLink" in button.dataset;
  const area = isLink ? document.createElement("textarea") : document.getElementById(button.dataset.copy);
  if (isLink) {
    area.value = location.origin + location.pathname;
    button.after(area);
  }
  const done = await copied(area);
  button.textContent = done ? "Copied" : "Selected: press Ctrl+C";
  if (isLink && done) area.remove();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy], [data-copy-link]");
  if (button) copy(button);
});
// A browser has six connections to a server: a tab that nobody looks at must not hold one.
document.addEventListener("visibilitychange", () => (document.hidden ? closeStream() : openStream()));

addLocalTimes(document);
if (!document.hidden) openStream();
setInterval(() => {
  if (performance.now() - lastRefresh > IDLE_MS) refresh();
}, 1000);
