// All tasks as a list: only the rows in view exist.
const ROW = 22;
let order = [], body = null;
const columns = [
  ["start", "task", "n"], ["name", "does", ""], ["lane", "lane", ""], ["begin", "starts", "n"], ["length", "takes", "n"],
  ["share", "share", "n"], ["slack", "slack", "n"], ["line", "line", ""],
];

function sorted() {
  const s = D.steps[view.step];
  order = [];
  for (let i = 0; i < COUNT; i++) {
    if (shown(i) && (!view.match || view.match[i])) order.push(i);
  }
  const slack = i => (s.slack[i] === null ? Infinity : s.slack[i]);
  const by = {
    start: (a, b) => a - b,
    begin: (a, b) => s.start[a] - s.start[b] || a - b,
    length: (a, b) => (s.end[b] - s.start[b]) - (s.end[a] - s.start[a]) || a - b,
    slack: (a, b) => (slack(a) === slack(b) ? a - b : slack(a) - slack(b)),
    name: (a, b) => title(a).localeCompare(title(b)) || a - b,
    lane: (a, b) => T.lane[a] - T.lane[b] || a - b,
    line: (a, b) => span(a).localeCompare(span(b)) || a - b,
  };
  by.share = by.length;
  order.sort(by[view.sort]);
}

function showList() {
  sorted();
  const panel = $("panel");
  open = "";
  panel.textContent = "";
  const box = element("div", undefined, { className: "rows", role: "table", "aria-label": "Tasks", "aria-rowcount": order.length });
  const head = element("div", undefined, { className: "h", role: "row" });
  for (const [key, name, cls] of columns) {
    const cell = element("div", undefined, { role: "columnheader", className: cls });
    const b = element("button", name, { type: "button", className: cls, "aria-pressed": view.sort === key });
    b.addEventListener("click", () => { view.sort = key; showList(); });
    cell.append(b);
    head.append(cell);
  }
  body = element("div", undefined, { role: "rowgroup" });
  body.style.position = "relative";
  body.style.height = order.length * ROW + "px";
  box.append(head, body);
  panel.append(box);
  panel.scrollTop = 0;
  markRow();
}

function fillRows() {
  if (tab !== "list" || !body) return;
  const panel = $("panel"), s = D.steps[view.step];
  const from = Math.max(0, Math.floor(panel.scrollTop / ROW) - 5), to = Math.min(order.length, from + Math.ceil(panel.clientHeight / ROW) + 10);
  body.textContent = "";
  for (let k = from; k < to; k++) {
    const i = order[k], d = s.end[i] - s.start[i];
    const r = element("div", undefined, { className: "r", role: "row", "aria-rowindex": k + 1, "aria-selected": i === view.task });
    r.style.position = "absolute";
    r.style.top = k * ROW + "px";
    r.style.left = r.style.right = "0";
    const slack = s.slack[i];
    [id(i), title(i), D.lanes[T.lane[i]], time(s.start[i]), time(d), percent(d / s.seconds), slack === null ? "any" : time(slack), span(i)]
      .forEach((text, c) => r.append(element("span", text, { className: columns[c][2], role: "cell" })));
    r.addEventListener("click", () => select(i));
    body.append(r);
  }
}

// markRow scrolls to the selected task.
function markRow() {
  const k = order.indexOf(view.task), panel = $("panel");
  if (k >= 0 && (k * ROW < panel.scrollTop || (k + 2) * ROW > panel.scrollTop + panel.clientHeight - 26)) {
    panel.scrollTop = Math.max(0, k * ROW - panel.clientHeight / 3);
  }
  fillRows();
}
