// The timeline and the memory chart on one canvas.
const canvas = $("canvas");
const ctx = canvas.getContext("2d");
const LEFT = 84, RIGHT = 14, AXIS = 24, LANE = 30, GAP = 5, HEAD = 22, CHART = 84;
let width = 800, height = 300, charts = [];

function layout() {
  let y = AXIS, step = -1;
  for (const r of rows) {
    if (r.step !== step) {
      step = r.step;
      y += HEAD;
    }
    r.top = y;
    y += LANE + GAP;
  }
  charts = [];
  D.steps[0].memory.forEach((m, k) => {
    y += HEAD;
    charts.push({ top: y, index: k, name: m.name });
    y += CHART + GAP;
  });
  height = y + 6;
  const box = $("stage").clientWidth || 800;
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  width = box;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
}

const inner = () => width - LEFT - RIGHT;
const xOf = t => LEFT + (t - view.from) / (view.to - view.from) * inner();
const tOf = x => view.from + (x - LEFT) / inner() * (view.to - view.from);

let queued = false;
function redraw() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => { queued = false; draw(); });
}

function draw() {
  ctx.fillStyle = colours("back");
  ctx.fillRect(0, 0, width, height);
  ctx.font = "12px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  drawAxis();
  let step = -1;
  for (const r of rows) {
    if (r.step !== step) {
      step = r.step;
      const s = D.steps[step];
      label(s.title + ": " + time(s.seconds) + (s.rate ? ", " + Math.round(s.rate).toLocaleString("en") + " tokens/s" : ""), 8, r.top - HEAD / 2, "text", "600 12px system-ui, sans-serif");
    }
    drawLane(r);
  }
  charts.forEach(drawChart);
  drawArrows();
  canvas.dataset.from = view.from;
  canvas.dataset.to = view.to;
  canvas.dataset.task = view.task < 0 ? "" : id(view.task);
}

function label(text, x, y, colour, font) {
  ctx.font = font || "12px system-ui, sans-serif";
  ctx.fillStyle = colours(colour);
  ctx.fillText(text, x, y);
}

function drawAxis() {
  // A tick at about every 110 pixels, at 1, 2 or 5 times a power of ten.
  const rough = (view.to - view.from) * 110 / Math.max(inner(), 1);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const tick = power * (rough / power < 2 ? 2 : rough / power < 5 ? 5 : 10);
  ctx.strokeStyle = colours("grid");
  ctx.lineWidth = 1;
  ctx.textAlign = "center";
  for (let k = Math.ceil(view.from / tick); k * tick <= view.to; k++) {
    const x = Math.round(xOf(k * tick)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(x, AXIS - 4);
    ctx.lineTo(x, height);
    ctx.stroke();
    if (x > LEFT + 20 && x < width - RIGHT - 16 || k === 0) label(time(k * tick), Math.max(x, LEFT + 4), AXIS / 2, "dim");
  }
  ctx.textAlign = "left";
  // The step itself: what lies beside it belongs to its neighbours.
  ctx.fillStyle = colours("shade");
  for (const [a, b] of [[view.from, 0], [PERIOD, view.to]]) {
    if (b > a) ctx.fillRect(Math.max(xOf(a), LEFT), AXIS, Math.min(xOf(b), width - RIGHT) - Math.max(xOf(a), LEFT), height);
  }
}

// atOrAfter is the first run of a row that ends after a time.
function atOrAfter(runs, t) {
  let lo = 0, hi = runs.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (runs[mid].e <= t) lo = mid + 1; else hi = mid;
  }
  return lo;
}

function shown(i) { return !view.hidden.has(T.kind[i]); }

function drawLane(r) {
  const y = r.top;
  label(r.name, 8, y + LANE / 2, "dim");
  ctx.fillStyle = colours("lane");
  ctx.fillRect(LEFT, y, inner(), LANE);
  ctx.save();
  ctx.beginPath();
  ctx.rect(LEFT, y - 3, inner(), LANE + 6);
  ctx.clip();
  // Runs of less than a pixel are added up: each pixel shows the shares of its kinds.
  let column = -1, parts = [], faint = 1;
  const flush = () => {
    let top = y + LANE;
    const width = xOf(1) - xOf(0);
    parts.forEach((seconds, k) => {
      const h = Math.min(LANE, Math.max(seconds * width * LANE, 1));
      ctx.globalAlpha = faint;
      ctx.fillStyle = colours.kinds[k];
      ctx.fillRect(column, Math.max(y, top - h), 1, h);
      top -= h;
    });
    ctx.globalAlpha = 1;
    parts = [];
  };
  for (let k = atOrAfter(r.runs, view.from); k < r.runs.length; k++) {
    const run = r.runs[k];
    if (run.s > view.to) break;
    if (!shown(run.p)) continue;
    const x = xOf(run.s), w = Math.max(xOf(run.e) - x, 0.8);
    const selected = run.own && run.p === view.task;
    const dim = view.match && !view.match[run.p];
    const alpha = dim ? 0.16 : run.own ? 1 : 0.45;
    if (w < 1.5 && !selected) {
      if (Math.floor(x) !== column || faint !== alpha) {
        flush();
        column = Math.floor(x);
        faint = alpha;
      }
      parts[T.kind[run.p]] = (parts[T.kind[run.p]] || 0) + run.e - run.s;
      continue;
    }
    ctx.globalAlpha = alpha;
    ctx.fillStyle = colours.kinds[T.kind[run.p]];
    ctx.fillRect(x, y, w > 3 ? w - 0.6 : w, LANE);
    ctx.globalAlpha = 1;
    if (w > 30 && !dim) {
      const text = title(run.p);
      const from = Math.max(x, LEFT) + 5, room = Math.min(x + w, width - RIGHT) - from - 4;
      ctx.font = "12px system-ui, sans-serif";
      const fits = ctx.measureText(text).width <= room ? text : ctx.measureText(kind(run.p)).width <= room ? kind(run.p) : "";
      if (fits) {
        ctx.fillStyle = "#0d1117";
        ctx.fillText(fits, from, y + LANE / 2 - 1);
      }
    }
    if (selected) outline(x, y, w, r.step === view.step ? 2.5 : 1.2);
    else if (run.own && run.p === view.hover) outline(x, y, w, 1);
  }
  flush();
  drawPath(r);
  ctx.restore();
}

// drawPath marks the critical path.
function drawPath(r) {
  ctx.fillStyle = colours("path");
  let to = -1;
  for (let k = atOrAfter(r.runs, view.from); k < r.runs.length; k++) {
    const run = r.runs[k];
    if (run.s > view.to) break;
    if (!run.own || !shown(run.p) || !onPath[r.step].has(run.p)) continue;
    const x = xOf(run.s), e = Math.max(xOf(run.e), x + 1);
    if (e <= to + 0.5) continue;
    ctx.fillRect(Math.max(x, to), r.top + LANE - 4, e - Math.max(x, to), 4);
    to = e;
  }
}

function outline(x, y, w, line) {
  ctx.strokeStyle = colours("text");
  ctx.lineWidth = line;
  ctx.strokeRect(x - 0.5, y - 0.5, Math.max(w, 2) + 0.5, LANE + 1);
}

function drawChart(c) {
  const m = D.steps[0].memory[c.index];
  label(m.name + " memory: at most " + bytes(m.peak) + " of " + bytes(m.reserved) + " alive", 8, c.top - HEAD / 2 + 2, "text", "600 12px system-ui, sans-serif");
  ctx.fillStyle = colours("lane");
  ctx.fillRect(LEFT, c.top, inner(), CHART);
  const most = Math.max(m.peak, 1) * 1.05;
  const yOf = b => c.top + CHART - b / most * CHART;
  ctx.textAlign = "right";
  label(bytes(m.peak), LEFT - 6, yOf(m.peak) + 4, "dim", "11px system-ui, sans-serif");
  label("0", LEFT - 6, c.top + CHART - 6, "dim", "11px system-ui, sans-serif");
  ctx.textAlign = "left";
  ctx.save();
  ctx.beginPath();
  ctx.rect(LEFT, c.top, inner(), CHART);
  ctx.clip();
  const colour = colours("m-" + m.name);
  D.steps.forEach((s, k) => {
    const x = s.memory[c.index];
    if (!x) return;
    ctx.beginPath();
    steps(x, s.seconds, yOf);
    if (k === 0) {
      ctx.lineTo(xOf(s.seconds), c.top + CHART);
      ctx.lineTo(xOf(0), c.top + CHART);
      ctx.globalAlpha = 0.35;
      ctx.fillStyle = colour;
      ctx.fill();
      ctx.globalAlpha = 1;
      ctx.beginPath();
      steps(x, s.seconds, yOf);
    }
    ctx.setLineDash(k === 0 ? [] : [4, 3]);
    ctx.strokeStyle = k === 0 ? colour : colours("text");
    ctx.lineWidth = 1.5;
    ctx.stroke();
  });
  ctx.setLineDash([]);
  ctx.restore();
}

// steps traces a level over time; within a pixel the highest counts.
function steps(m, end, yOf) {
  ctx.moveTo(xOf(0), yOf(m.bytes[0]));
  let column = -1, most = 0;
  for (let k = 1; k < m.at.length; k++) {
    const x = xOf(m.at[k]);
    if (x < LEFT - 50 && k + 1 < m.at.length && xOf(m.at[k + 1]) < LEFT - 50) continue;
    if (Math.floor(x) === column) {
      most = Math.max(most, m.bytes[k]);
      ctx.lineTo(x, yOf(most));
      continue;
    }
    ctx.lineTo(x, yOf(m.bytes[k - 1]));
    ctx.lineTo(x, yOf(m.bytes[k]));
    column = Math.floor(x);
    most = m.bytes[k];
    if (x > width + 50) return;
  }
  ctx.lineTo(xOf(end), yOf(m.bytes[m.bytes.length - 1]));
}

// levelAt is the bytes alive at a time.
function levelAt(m, t) {
  let lo = 0, hi = m.at.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (m.at[mid] <= t) lo = mid + 1; else hi = mid;
  }
  return m.bytes[Math.max(0, lo - 1)];
}

// drawArrows joins the selected task with those it waits for, and those that wait for it.
function drawArrows() {
  if (view.task < 0) return;
  const s = D.steps[view.step];
  const rowOf = lane => rows.find(r => r.step === view.step && r.lane === lane);
  const arrow = (a, aShift, b, bShift) => {
    const ra = rowOf(T.lane[a]), rb = rowOf(T.lane[b]);
    if (!ra || !rb) return;
    const x1 = xOf(s.end[a] + aShift), x2 = xOf(s.start[b] + bShift);
    const y1 = ra.top + LANE / 2, y2 = rb.top + (rb.top > ra.top ? 0 : rb.top < ra.top ? LANE : LANE / 2);
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.bezierCurveTo(x1 + 14, y1, x2 - 14, y2, x2, y2);
    ctx.stroke();
    ctx.beginPath();
    ctx.arc(x2, y2, 3, 0, 7);
    ctx.fill();
  };
  ctx.save();
  ctx.beginPath();
  ctx.rect(LEFT, 0, inner(), height);
  ctx.clip();
  ctx.lineWidth = 1.6;
  ctx.strokeStyle = ctx.fillStyle = colours("wait");
  for (const [p, back] of waitsOf(view.task)) arrow(p, -back * s.seconds, view.task, 0);
  ctx.setLineDash([4, 3]);
  for (const [p, back] of followers[view.task]) arrow(view.task, 0, p, back * s.seconds);
  ctx.restore();
}
