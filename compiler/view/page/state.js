// What the page shows, and how numbers are written.
const $ = id => document.getElementById(id);
const D = JSON.parse($("data").textContent);
const T = D.task;
const COUNT = T.kind.length;
const PERIOD = Math.max(...D.steps.map(s => s.seconds), 1e-12);

// Bounds of all that was drawn: a step may leave work to the next one.
let first = 0, last = PERIOD;
for (const s of D.steps) {
  for (let i = 0; i < COUNT; i++) {
    first = Math.min(first, s.start[i]);
    last = Math.max(last, s.end[i]);
  }
  for (const r of s.others) first = Math.min(first, r.s);
}
const LEAST = Math.max(first, -PERIOD), MOST = Math.min(last, 2 * PERIOD);

const view = { from: 0, to: PERIOD, task: -1, step: 0, hidden: new Set(), match: null, matches: 0, hover: -1, sort: "start" };

// Rows of the drawing: each lane of each step that has tasks, its runs in order of time.
const rows = [];
D.steps.forEach((s, step) => {
  D.lanes.forEach((name, lane) => {
    const runs = [];
    for (let i = 0; i < COUNT; i++) {
      if (T.lane[i] === lane) runs.push({ p: i, s: s.start[i], e: s.end[i], own: true });
    }
    for (const r of s.others) {
      if (T.lane[r.p] === lane) runs.push({ p: r.p, s: r.s, e: r.e, own: false });
    }
    if (runs.length === 0) return;
    runs.sort((a, b) => a.s - b.s || a.e - b.e);
    rows.push({ step, lane, name, runs, top: 0 });
  });
});

// What waits for a task: the other way of waits.
const followers = Array.from({ length: COUNT }, () => []);
const waitsOf = i => T.waits.slice(i > 0 ? T.waitEnd[i - 1] : 0, T.waitEnd[i]);
for (let i = 0; i < COUNT; i++) {
  for (const [p, back] of waitsOf(i)) followers[p].push([i, back]);
}
const onPath = D.steps.map(s => new Set(s.path));

const id = i => D.first + i;
const kind = i => D.kinds[T.kind[i]];
const subject = i => (T.name[i] < 0 ? "" : D.names[T.name[i]]);
const span = i => D.spans[T.span[i]] || "";
const several = T.micro.some(m => m > 0);
function title(i) {
  let s = kind(i);
  if (subject(i)) s += " " + subject(i);
  if (T.micro[i] >= 0 && several) s += " micro " + T.micro[i];
  if (T.back[i]) s += " (of the step before)";
  return s;
}

function digits(x) {
  const a = Math.abs(x);
  return x.toFixed(a < 9.995 ? 2 : a < 99.95 ? 1 : 0);
}
function time(s) {
  const a = Math.abs(s);
  if (a === 0) return "0";
  if (a < 999.5e-9) return digits(s * 1e9) + " ns";
  if (a < 999.5e-6) return digits(s * 1e6) + " µs";
  if (a < 0.9995) return digits(s * 1e3) + " ms";
  return digits(s) + " s";
}
function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  while (Math.abs(n) >= 1024 && u < units.length - 1) { n /= 1024; u++; }
  return u ? digits(n) + " " + units[u] : n + " B";
}
function amount(n, unit) {
  const units = ["", "k", "M", "G", "T", "P", "E"];
  let u = 0;
  while (Math.abs(n) >= 999.5 && u < units.length - 1) { n /= 1000; u++; }
  return digits(n) + " " + units[u] + unit;
}
const percent = x => (100 * x).toFixed(100 * x < 9.95 ? 1 : 0) + " %";

// element makes one without ever reading a text as markup.
function element(name, text, props) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  for (const k in props || {}) {
    if (k in e) e[k] = props[k]; else e.setAttribute(k, props[k]);
  }
  return e;
}

// Colours come from the style sheet, so that a theme is one place.
let colours = {};
function readColours() {
  const css = getComputedStyle(document.documentElement);
  colours = name => css.getPropertyValue("--" + name).trim() || "#888888";
  const kinds = D.kinds.map(k => colours("k-" + k));
  const seen = {};
  const all = colours;
  colours = name => seen[name] ?? (seen[name] = all(name));
  colours.kinds = kinds;
}
