// Controls: selection, filter, view, pointer, keys.

const find = (id) => document.getElementById(id);
const canvas = find("timeline");
const overview = find("overview");
const panel = find("details");
const tip = find("tip");
find("tools").hidden = find("drawn").hidden = find("count").hidden = false;
document.documentElement.classList.add("scripted");
const timeline = new Timeline(canvas, overview);

// Selection.

function choose(attempt, { open = true, close = false } = {}) {
  if (timeline.selected) timeline.selected.row.removeAttribute("aria-current");
  timeline.selected = attempt;
  if (!attempt) {
    panel.replaceChildren();
    find("stage").classList.remove("open");
  } else {
    attempt.row.setAttribute("aria-current", "true");
    find("said").textContent = `${attempt.id}: ${attempt.why}. ${attempt.result}.`;
    if (open) {
      panel.replaceChildren(...detailsOf(attempt, (other) => choose(other), leave));
      panel.scrollTop = 0;
      find("stage").classList.add("open");
    }
  }
  timeline.measure();
  if (attempt) timeline.reveal(attempt, close);
}

function leave() {
  choose(null);
  canvas.focus({ preventScroll: true });
}

// The filter.

function applyFilter() {
  const count = sift();
  for (const attempt of attempts) attempt.row.hidden = !attempt.wanted;
  for (const body of document.querySelectorAll("tbody")) body.hidden = !body.querySelector("tr:not([hidden])");
  const all = plural(attempts.length, "attempt");
  find("count").textContent = count === attempts.length ? all : `${count} of ${all}`;
  if (timeline.selected && !timeline.selected.wanted) choose(null);
  timeline.later();
}

for (const [group, one] of Object.entries(GROUPS)) {
  const count = attempts.filter((attempt) => attempt.group === group).length;
  if (!count) continue;
  const chip = el("button", { type: "button", class: `chip ${group}`, "aria-pressed": "false" },
    el("span", { class: "swatch", "aria-hidden": "true" }, one.mark), ` ${one.name} `, el("b", {}, String(count)));
  chip.addEventListener("click", () => {
    const on = !filter.groups.delete(group);
    if (on) filter.groups.add(group);
    chip.setAttribute("aria-pressed", String(on));
    applyFilter();
  });
  find("outcomes").append(chip);
}
if (controllers.length > 1) {
  find("controller").hidden = false;
  find("controller").append(el("option", { value: "" }, "all controllers"), ...controllers.map((name) => el("option", { value: name }, name)));
}
find("controller").addEventListener("change", (event) => {
  filter.controller = event.target.value;
  applyFilter();
});
let typed = 0;
find("filter").addEventListener("input", (event) => {
  clearTimeout(typed);
  typed = setTimeout(() => {
    filter.text = event.target.value;
    applyFilter();
  }, 60);
});

function unfilter() {
  find("filter").value = filter.text = "";
  filter.groups.clear();
  for (const chip of document.querySelectorAll(".chip")) chip.setAttribute("aria-pressed", "false");
  find("controller").value = filter.controller = "";
  applyFilter();
}

// The view.

function fold() {
  const middle = timeline.ruler.time((timeline.from + timeline.to) / 2);
  const all = timeline.to - timeline.from >= timeline.ruler.length;
  const share = (timeline.to - timeline.from) / timeline.ruler.length;
  timeline.folded = !timeline.folded;
  find("fold").setAttribute("aria-pressed", String(timeline.folded));
  timeline.lay();
  const half = (timeline.ruler.length * share) / 2;
  if (all) timeline.fit();
  else timeline.show(timeline.ruler.place(middle) - half, timeline.ruler.place(middle) + half);
}

/** Lanes by object instead of by worker. */
function regroup() {
  if (find("lanes").hidden) return;
  timeline.byObject = !timeline.byObject;
  find("lanes").setAttribute("aria-pressed", String(timeline.byObject));
  timeline.measure();
}

function changeZone() {
  clock.local = !clock.local;
  find("zone").setAttribute("aria-pressed", String(clock.local));
  find("zone-name").textContent = clock.local ? "local" : "UTC";
  for (const attempt of attempts) attempt.row.querySelector("time").textContent = moment(attempt.start, 3, clock.days).slice(clock.days ? 5 : 0);
  if (timeline.selected) choose(timeline.selected);
  timeline.later();
}

find("zoom-in").addEventListener("click", () => timeline.zoom(0.5));
find("zoom-out").addEventListener("click", () => timeline.zoom(2));
find("fit").addEventListener("click", () => timeline.fit());
find("fold").addEventListener("click", fold);
find("lanes").hidden = !timeline.byObject;
find("lanes").setAttribute("aria-pressed", String(timeline.byObject));
find("lanes").addEventListener("click", regroup);
find("zone").addEventListener("click", changeZone);
find("help").addEventListener("click", () => find("keyhelp").showModal());

// The pointer.

const place = (event, where = canvas) => {
  const box = where.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
const fingers = new Map(); // pointer -> x
let drag = null; // {x, from, to, moved, brush}
let last = { at: -Infinity, x: 0, y: 0, hit: null }; // the click before

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 16 : 1;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    timeline.move((event.deltaX || event.deltaY) * unit);
  } else {
    timeline.zoom(Math.exp(event.deltaY * unit * 0.0022), place(event)[0]);
  }
}, { passive: false });

canvas.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  const [x, y] = place(event);
  fingers.set(event.pointerId, x);
  canvas.setPointerCapture(event.pointerId);
  drag = { x, y, from: timeline.from, to: timeline.to, moved: false, brush: y < AXIS || event.shiftKey };
});

canvas.addEventListener("pointermove", (event) => {
  const [x, y] = place(event);
  if (fingers.size === 2 && fingers.has(event.pointerId)) return pinch(event.pointerId, x);
  if (!drag) return hover(x, y);
  if (Math.abs(x - drag.x) > 4) drag.moved = true;
  if (!drag.moved) return undefined;
  hover(-1, -1);
  if (drag.brush) timeline.brush = [drag.x, x];
  else {
    const by = ((drag.x - x) / timeline.room) * (drag.to - drag.from);
    timeline.show(drag.from + by, drag.to + by);
  }
  return timeline.later();
});

function pinch(id, x) {
  const other = [...fingers].find(([key]) => key !== id)[1];
  const before = Math.abs(fingers.get(id) - other);
  fingers.set(id, x);
  drag = null;
  if (before > 4) timeline.zoom(before / Math.max(Math.abs(x - other), 4), (x + other) / 2);
}

canvas.addEventListener("pointerup", (event) => {
  fingers.delete(event.pointerId);
  if (!drag) return;
  const [x, y] = place(event);
  const { moved, brush, x: begun } = drag;
  drag = null;
  timeline.brush = null;
  if (moved && brush) {
    const ends = [begun, x].map((end) => timeline.ruler.place(timeline.time(end)));
    timeline.show(Math.min(...ends), Math.max(...ends));
  } else if (!moved) {
    // The first click may open the panel, which moves everything: the second of a double click selects the same attempt.
    const again = event.timeStamp - last.at < 500 && Math.abs(x - last.x) < 6 && Math.abs(y - last.y) < 6;
    last = { at: event.timeStamp, x, y, hit: again ? last.hit : timeline.at(x, y) };
    choose(last.hit);
    canvas.focus({ preventScroll: true });
  }
  timeline.later();
});
canvas.addEventListener("pointercancel", (event) => {
  fingers.delete(event.pointerId);
  drag = timeline.brush = null;
});
canvas.addEventListener("pointerleave", () => hover(-1, -1));
canvas.addEventListener("dblclick", (event) => {
  if (last.hit) timeline.reveal(last.hit, true);
  else timeline.zoom(0.4, place(event)[0]);
});

function hover(x, y) {
  const hit = x < 0 ? null : timeline.at(x, y);
  if (hit !== timeline.hovered) {
    timeline.hovered = hit;
    timeline.later();
  }
  canvas.style.cursor = hit ? "pointer" : y >= 0 && y < AXIS ? "col-resize" : "";
  tip.hidden = !hit;
  if (!hit) return;
  tip.replaceChildren(
    el("b", {}, `${GROUPS[hit.group].mark} ${hit.id}`), ` ${moment(hit.start)} · ${duration(hit.end - hit.start)}`,
    el("br"), el("bdi", {}, hit.why), el("br"), el("bdi", {}, hit.did), el("br"), el("bdi", {}, hit.result));
  const left = Math.min(x + 14, canvas.clientWidth - tip.offsetWidth - 4);
  tip.style.left = `${Math.max(left, 0)}px`;
  tip.style.top = `${overview.offsetHeight + y + 18}px`;
}

function overviewTo(event) {
  const [x] = place(event, overview);
  const at = ((x - timeline.left) / (overview.clientWidth - timeline.left - 8)) * timeline.ruler.length;
  const half = (timeline.to - timeline.from) / 2;
  timeline.show(at - half, at + half);
}
overview.addEventListener("pointerdown", (event) => {
  overview.setPointerCapture(event.pointerId);
  overviewTo(event);
});
overview.addEventListener("pointermove", (event) => {
  if (event.buttons) overviewTo(event);
});

// The table.

document.querySelector("table").addEventListener("click", (event) => {
  const row = event.target.closest("tr[data-i]");
  if (!row || String(getSelection())) return;
  choose(attempts[Number(row.dataset.i)]);
  if (event.target.closest("a")) panel.focus({ preventScroll: true });
});

// Keys.

function walk(to) {
  if (to) choose(to, { open: find("stage").classList.contains("open") });
}

const KEYS = {
  ArrowLeft: (event) => (event.shiftKey ? timeline.move(-80) : walk(neighbour(timeline.selected, -1))),
  ArrowRight: (event) => (event.shiftKey ? timeline.move(80) : walk(neighbour(timeline.selected, 1))),
  ArrowUp: () => walk(timeline.selected && timeline.selected.from.length ? timeline.selected.from[0].from : null),
  ArrowDown: () => walk(timeline.selected && timeline.selected.to.length ? timeline.selected.to[0].to : null),
  Home: () => walk(neighbour(null, 1)),
  End: () => walk(neighbour(null, -1)),
  Enter: () => {
    const chosen = timeline.selected || neighbour(null, 1);
    if (!chosen) return;
    choose(chosen);
    panel.focus({ preventScroll: true });
  },
};
const ANYWHERE = {
  "+": () => timeline.zoom(0.6),
  "=": () => timeline.zoom(0.6),
  "-": () => timeline.zoom(1 / 0.6),
  0: () => timeline.fit(),
  f: fold,
  o: regroup,
  u: changeZone,
  "/": () => find("filter").select(),
  "?": () => find("keyhelp").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || find("keyhelp").open) return;
  const writing = event.target.matches("input, select");
  if (event.key === "Escape") {
    if (find("stage").classList.contains("open") || timeline.selected) leave();
    else unfilter();
    if (writing) canvas.focus({ preventScroll: true });
    return;
  }
  const within = event.target === canvas || (panel.contains(event.target) && event.key.startsWith("Arrow") && event.key !== "ArrowUp" && event.key !== "ArrowDown");
  const does = writing ? null : (within && KEYS[event.key]) || ANYWHERE[event.key];
  if (!does) return;
  event.preventDefault();
  does(event);
});

// The window.

for (const [mark, text] of [["●", "change"], ["◇", "first seen"], ["↻", "retry"], ["◷", "timer"], ["✓", "done"], ["…", "waiting"], ["✕", "failed (striped)"], ["→", "solid: triggered by its write; dotted: by a later change of the object; dashed: by a retry or timer"]]) {
  find("legend").append(el("span", {}, el("b", {}, mark), ` ${text}`));
}
new ResizeObserver(() => timeline.measure()).observe(canvas.parentElement);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => timeline.measure());
matchMedia("print").addEventListener("change", () => timeline.measure());
document.querySelector("table").classList.toggle("single", data.single && controllers.length < 2);
document.querySelector("table").classList.toggle("days", data.days);
applyFilter();
timeline.measure();
const named = byId.get(decodeURIComponent(location.hash.slice(1)));
if (named) choose(named);
