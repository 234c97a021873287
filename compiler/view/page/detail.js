// The selected task, and the texts it comes from.
function select(i, step, keep) {
  view.task = i;
  if (step !== undefined) view.step = step;
  showTask();
  if (i >= 0) {
    if (!keep) reveal(i);
    if (tab !== "list") showText(); else markRow();
  }
  redraw();
}

// reveal pans so that the task is in view.
function reveal(i) {
  const s = D.steps[view.step], w = view.to - view.from;
  if (s.start[i] >= view.from && s.end[i] <= view.to) return;
  if (s.end[i] - s.start[i] > w || s.end[i] < view.from || s.start[i] > view.to) {
    const mid = (s.start[i] + s.end[i]) / 2;
    range(mid - w / 2, mid + w / 2);
  } else if (s.start[i] < view.from) {
    range(s.start[i] - w / 20, s.start[i] - w / 20 + w);
  } else {
    range(s.end[i] + w / 20 - w, s.end[i] + w / 20);
  }
}

function link(text, act) {
  const b = element("button", text, { type: "button" });
  b.addEventListener("click", act);
  return b;
}

function showTask() {
  const box = $("task");
  box.textContent = "";
  const i = view.task;
  if (i < 0) {
    box.append(element("p", "Select a task: click it, or move with n and p.", { className: "hint" }));
    return;
  }
  box.append(element("h3", "Task " + id(i) + ": " + title(i)));
  const dl = element("dl");
  const row = (name, ...values) => {
    dl.append(element("dt", name));
    const dd = element("dd");
    values.forEach((v, k) => {
      if (k) dd.append(element("br"));
      dd.append(v);
    });
    dl.append(dd);
  };
  row("lane", D.lanes[T.lane[i]]);
  if (span(i)) row("line", link(span(i), () => { pick("mt"); showText(); }));
  D.steps.forEach((s, k) => {
    const d = s.end[i] - s.start[i];
    row(k && D.steps.length > 1 || s.title.startsWith("measured") ? "measured" : "predicted",
      time(s.start[i]) + " to " + time(s.end[i]) + ": " + time(d) + ", " + percent(d / s.seconds) + " of the step");
    const slack = s.slack[i];
    row("slack", slack === null ? "any: nothing ever waits for it" : slack <= 1e-6 * s.seconds ? "none: on the critical path" : time(slack));
    if (s.bound[i]) row("bound by", s.bound[i]);
  });
  const kernels = (D.launches[T.template[i] + "/" + kind(i)] || []).slice().sort((a, b) => b.share - a.share).slice(0, 8);
  if (kernels.length) {
    row("kernels", ...kernels.map(k => {
      const name = percent(k.share) + " " + k.kernel + (k.times > 1 ? " × " + k.times : "");
      return k.span ? link(name + ", " + k.span, () => { pick("mt"); showText(false, k.span); }) : name;
    }));
  }
  if (T.flops[i]) row("FLOPs", amount(T.flops[i], "FLOP"));
  if (T.bytes[i]) row("bytes", bytes(T.bytes[i]));
  const waits = waitsOf(i).map(([p, back]) => link(id(p) + ": " + title(p) + (back ? ", a step before" : ""), () => select(p)));
  if (waits.length) row("waits for", ...waits);
  const next = followers[i].slice(0, 12).map(([p, back]) => link(id(p) + ": " + title(p) + (back ? ", a step later" : ""), () => select(p)));
  if (next.length) row("waited for by", ...next);
  const names = list => list.map(b => D.buffers[b]);
  if (T.reads[i].length) row("reads", ...names(T.reads[i]));
  if (T.writes[i].length) row("writes", ...names(T.writes[i]));
  box.append(dl);
  box.scrollTop = 0;
}

let tab = "mt";
const tabs = ["mt", "go", "list"];
function pick(name, focus) {
  tab = name;
  for (const t of tabs) {
    const b = $("tab-" + t);
    b.setAttribute("aria-selected", t === name);
    b.tabIndex = t === name ? 0 : -1;
    if (t === name && focus) b.focus();
  }
  $("panel").setAttribute("aria-labelledby", "tab-" + name);
  if (name === "list") showList(); else showText(true);
}

// place finds where a task's text is: the file's number and the line, from 1.
function place(i, at) {
  if (at) i = -1;
  if (tab === "go") {
    const at = i < 0 ? undefined : D.funcs[T.template[i] + "/" + kind(i)];
    if (at) return at;
    return [i < 0 ? D.go.findIndex(f => f.name.startsWith("template_")) : -1, 0];
  }
  const m = /^(.*):(\d+)$/.exec(at || (i < 0 ? "" : span(i)));
  if (m) return [D.sources.findIndex(f => f.name === m[1]), Number(m[2])];
  return [i < 0 ? 0 : -1, 0];
}

let open = "";
function showText(anew, at) {
  const panel = $("panel");
  const files = tab === "go" ? D.go : D.sources;
  const [file, line] = place(view.task, at);
  if (file < 0 || !files[file]) {
    open = "";
    panel.textContent = "";
    const what = files.length === 0 ? "There is no text of this kind beside the schedule."
      : tab === "go" ? "The engine does this itself: no function is generated for it." : "The line of this task is not at hand: " + (at || span(view.task) || "it has none") + ".";
    panel.append(element("p", what, { className: "hint", style: "padding: 4px 12px" }));
    return;
  }
  const name = tab + "/" + file;
  if (open !== name || anew) {
    open = name;
    panel.textContent = "";
    panel.append(element("div", files[file].name, { className: "file" }));
    const code = element("div", undefined, { className: "code" });
    files[file].text.replace(/\n$/, "").split("\n").forEach((text, k) => code.append(element("div", text, { "data-n": k + 1 })));
    panel.append(code);
  }
  const code = panel.querySelector(".code");
  for (const e of code.querySelectorAll(".on")) {
    e.classList.remove("on");
    e.removeAttribute("aria-current");
  }
  const e = line > 0 ? code.children[line - 1] : null;
  if (e) {
    e.classList.add("on");
    e.setAttribute("aria-current", "true");
    panel.scrollTop = Math.max(0, e.offsetTop - panel.clientHeight / 3);
  } else if (anew) {
    panel.scrollTop = 0;
  }
}
