// Mouse, wheel, keyboard, search, theme and print.
function range(from, to) {
  const least = PERIOD * 1e-7, w = Math.min(Math.max(to - from, least), MOST - LEAST);
  from = Math.min(Math.max(from, LEAST), MOST - w);
  view.from = from;
  view.to = from + w;
  redraw();
}
function zoom(factor, at) {
  if (at === undefined) at = view.task >= 0 && D.steps[view.step].start[view.task] >= view.from && D.steps[view.step].start[view.task] <= view.to
    ? D.steps[view.step].start[view.task] : (view.from + view.to) / 2;
  range(at - (at - view.from) * factor, at + (view.to - at) * factor);
}
function pan(share) {
  const d = (view.to - view.from) * share;
  range(view.from + d, view.to + d);
}
const fit = () => range(0, PERIOD);

// hit is the run under a point.
function hit(x, y) {
  if (x < LEFT || x > width - RIGHT) return null;
  for (const r of rows) {
    if (y < r.top || y > r.top + LANE) continue;
    const t = tOf(x), near = 2 / inner() * (view.to - view.from);
    let best = null;
    for (let k = Math.max(0, atOrAfter(r.runs, t - near) - 1); k < r.runs.length && r.runs[k].s <= t + near; k++) {
      const run = r.runs[k];
      if (!shown(run.p) || run.e < t - near) continue;
      const off = Math.max(run.s - t, t - run.e, 0);
      if (!best || off < best.off) best = { run, row: r, off };
    }
    return best;
  }
  return null;
}

function point(e) {
  const box = canvas.getBoundingClientRect();
  return [e.clientX - box.left, e.clientY - box.top];
}

let drag = null;
canvas.addEventListener("pointerdown", e => {
  canvas.focus({ preventScroll: true });
  const [x, y] = point(e);
  drag = { x, y, from: view.from, to: view.to, moved: false };
  try { canvas.setPointerCapture(e.pointerId); } catch { /* a pointer that is gone */ }
});
canvas.addEventListener("pointermove", e => {
  const [x, y] = point(e);
  if (drag) {
    if (Math.abs(x - drag.x) > 3) drag.moved = true;
    if (drag.moved) {
      const d = (drag.x - x) / inner() * (drag.to - drag.from);
      range(drag.from + d, drag.to + d);
    }
    $("tip").hidden = true;
    return;
  }
  hover(x, y);
});
canvas.addEventListener("pointerup", e => {
  const [x, y] = point(e);
  if (drag && !drag.moved) {
    const h = hit(x, y);
    if (h) select(h.run.p, h.row.step, true); else select(-1);
  }
  drag = null;
});
canvas.addEventListener("pointercancel", () => { drag = null; });
canvas.addEventListener("pointerleave", () => {
  $("tip").hidden = true;
  if (view.hover >= 0) { view.hover = -1; redraw(); }
});
canvas.addEventListener("dblclick", e => {
  const h = hit(...point(e));
  if (h) zoomTo(h.run.s, h.run.e); else fit();
});
canvas.addEventListener("wheel", e => {
  e.preventDefault();
  const unit = e.deltaMode === 1 ? 30 : e.deltaMode === 2 ? 300 : 1;
  if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
    pan((e.shiftKey && !e.deltaX ? e.deltaY : e.deltaX) * unit / 900);
    return;
  }
  zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * unit / 400))), tOf(point(e)[0]));
}, { passive: false });

function zoomTo(from, to) {
  const d = Math.max((to - from) * 0.6, PERIOD * 1e-6);
  range(from - d, to + d);
}

function hover(x, y) {
  const tip = $("tip"), h = hit(x, y);
  let text = "", over = -1;
  if (h) {
    over = h.run.own ? h.run.p : -1;
    const d = h.run.e - h.run.s;
    text = title(h.run.p) + (h.run.own ? "" : ", left over by the step before") + "\n" + time(h.run.s) + " to " + time(h.run.e) + ": " + time(d);
    if (span(h.run.p)) text += "\n" + span(h.run.p);
  } else {
    const c = charts.find(c => y >= c.top && y <= c.top + CHART), t = tOf(x);
    if (c && x >= LEFT && t >= 0 && t <= PERIOD) {
      text = "at " + time(t);
      D.steps.forEach(s => { if (s.memory[c.index]) text += "\n" + bytes(levelAt(s.memory[c.index], t)) + " alive, " + s.title; });
    }
  }
  if (over !== view.hover) { view.hover = over; redraw(); }
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const w = tip.offsetWidth, tall = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(x + 14, width - w - 6)) + "px";
  tip.style.top = (y + 18 + tall > height ? y - tall - 10 : y + 18) + "px";
}

// along moves the selection on its lane, lane moves it to the lane beside.
function along(step) {
  const own = r => r.runs.filter(x => x.own && shown(x.p) && (!view.match || view.match[x.p]));
  if (view.task < 0) {
    for (const r of rows) {
      const f = own(r).find(x => x.e > view.from);
      if (f) return select(f.p, r.step);
    }
    return;
  }
  const r = rows.find(r => r.step === view.step && r.lane === T.lane[view.task]);
  if (!r) return;
  const list = own(r), at = D.steps[view.step].start[view.task];
  const k = list.findIndex(x => x.p === view.task);
  const next = k >= 0 ? list[k + step] : step > 0 ? list.find(x => x.s > at) : list.filter(x => x.s < at).pop();
  if (next) select(next.p, r.step);
}
function lane(step) {
  if (view.task < 0) return along(1);
  const k = rows.findIndex(r => r.step === view.step && r.lane === T.lane[view.task]) + step;
  const r = rows[k];
  if (!r) return;
  const s = D.steps[view.step], at = (s.start[view.task] + s.end[view.task]) / 2;
  let best = null;
  for (const x of r.runs) {
    if (!x.own || !shown(x.p)) continue;
    const off = Math.abs((x.s + x.e) / 2 - at);
    if (!best || off < best.off) best = { p: x.p, off };
  }
  if (best) select(best.p, r.step);
}

canvas.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const keys = {
    "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), "_": () => zoom(1 / 0.6), "0": fit,
    ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), PageUp: () => pan(-0.9), PageDown: () => pan(0.9),
    Home: () => range(0, view.to - view.from), End: () => range(PERIOD - (view.to - view.from), PERIOD),
    n: () => along(1), p: () => along(-1), ArrowDown: () => lane(1), ArrowUp: () => lane(-1),
    z: () => { if (view.task >= 0) zoomTo(D.steps[view.step].start[view.task], D.steps[view.step].end[view.task]); },
    Escape: () => select(-1),
  };
  const act = keys[e.key];
  if (!act) return;
  e.preventDefault();
  act();
});
$("in").addEventListener("click", () => zoom(0.6));
$("out").addEventListener("click", () => zoom(1 / 0.6));
$("fit").addEventListener("click", fit);

// Search: every word has to occur in what is said of a task.
let texts = null;
function find() {
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  view.match = null;
  view.matches = 0;
  if (words.length) {
    texts = texts || Array.from({ length: COUNT }, (_, i) => (id(i) + " " + title(i) + " " + span(i) + " " + D.lanes[T.lane[i]]).toLowerCase());
    view.match = new Uint8Array(COUNT);
    for (let i = 0; i < COUNT; i++) {
      if (words.every(w => texts[i].includes(w))) { view.match[i] = 1; view.matches++; }
    }
  }
  $("found").textContent = words.length ? view.matches + " of " + COUNT + " tasks" : "";
  if (tab === "list") showList();
  redraw();
}
$("find").addEventListener("input", find);
$("find").addEventListener("keydown", e => {
  if (e.key === "Escape") { $("find").value = ""; find(); }
  if (e.key !== "Enter" || !view.match) return;
  for (let k = 1; k <= COUNT; k++) {
    const i = (Math.max(view.task, -1) + k) % COUNT;
    if (view.match[i]) { select(i); return; }
  }
});

D.kinds.forEach((name, k) => {
  const b = element("button", undefined, { type: "button", "aria-pressed": true });
  const swatch = element("i");
  swatch.style.background = "var(--k-" + name + ", #888)";
  b.append(swatch, name);
  b.addEventListener("click", () => {
    if (view.hidden.has(k)) view.hidden.delete(k); else view.hidden.add(k);
    b.setAttribute("aria-pressed", !view.hidden.has(k));
    if (tab === "list") showList();
    redraw();
  });
  $("legend").append(b);
});
const pathMark = element("span", undefined, { style: "display: inline-flex; align-items: center; gap: 6px; padding: 1px 6px" });
const bar = element("i");
bar.style.cssText = "height: 4px; background: var(--path); border-radius: 0";
pathMark.append(bar, "critical path");
$("legend").append(pathMark);

for (const t of tabs) {
  $("tab-" + t).addEventListener("click", () => pick(t));
  $("tab-" + t).addEventListener("keydown", e => {
    const d = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (d) pick(tabs[(tabs.indexOf(t) + d + tabs.length) % tabs.length], true);
  });
}
$("panel").addEventListener("scroll", fillRows);

// Theme: the system's, until the button says otherwise.
const system = window.matchMedia("(prefers-color-scheme: dark)");
let chosen = null, printing = false;
function applyTheme() {
  const dark = !printing && (chosen === null ? system.matches : chosen === "dark");
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").setAttribute("aria-pressed", dark);
  readColours();
  redraw();
}
$("theme").addEventListener("click", () => {
  chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  applyTheme();
});
system.addEventListener("change", applyTheme);

// On paper: the whole step, in light colours.
let before = null;
function print(on) {
  if (on === printing) return;
  printing = on;
  if (on) before = [view.from, view.to];
  applyTheme();
  if (on) fit(); else if (before) range(...before);
  draw();
}
window.addEventListener("beforeprint", () => print(true));
window.addEventListener("afterprint", () => print(false));

new ResizeObserver(() => { layout(); draw(); }).observe($("stage"));
readColours();
applyTheme();
layout();
fit();
showTask();
pick("mt");
draw();
