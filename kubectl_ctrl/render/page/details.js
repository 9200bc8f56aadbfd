// The details of the selected attempt. Text from the cluster is only ever set as text, never as HTML.

function el(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

function section(title, ...children) {
  return el("section", {}, el("h3", {}, title), ...children);
}

function plural(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/** A value as JSON; strings have no quotes. */
function valueText(change, side) {
  if (!(side in change)) return "<none>";
  const value = change[side];
  return typeof value === "string" ? value || '""' : JSON.stringify(value, null, 1);
}

/** The old and the new value below the path of each changed field. */
function diffs(one) {
  if (!one.changes && !one.unshown) return null;
  const list = el("div", { class: "diffs" });
  const line = (change, side, sign) =>
    el("div", { class: side }, el("span", { class: "sign", "aria-label": side }, sign), el("bdi", {}, valueText(change, side)));
  for (const change of one.changes || []) {
    list.append(el("div", { class: "path" }, el("bdi", {}, change.path)));
    if ("old" in change) list.append(line(change, "old", "-"));
    list.append(line(change, "new", "+"));
  }
  if (one.unshown) list.append(el("div", { class: "path" }, `and ${one.unshown} more`));
  return list;
}

/** A button that shows another attempt. */
function jump(attempt, go, text = attempt.id) {
  return el("button", { type: "button", class: "jump", onclick: () => go(attempt) }, text);
}

function causeItem(attempt, cause, place, go) {
  const link = attempt.from.find((one) => one.cause === place);
  const facts = [cause.object, cause.version ? `version ${cause.version}` : "", `at ${moment(cause.at)}`].filter(Boolean);
  const item = el("li", {}, el("p", {}, el("span", { class: "mark" }, MARKS[cause.kind] || "●"), " ", el("bdi", {}, cause.text)));
  item.append(el("p", { class: "facts" }, facts.join(" · ")), ...[diffs(cause)].filter(Boolean));
  if (link) {
    const how = { wrote: "written by ", followed: "a later change of an object written by " }[link.kind] || `${link.kind} of `;
    item.append(el("p", { class: "facts" }, how, jump(link.from, go, link.call || link.from.id), ` (${link.from.result})`));
  }
  return item;
}

/** A call: a bar on the attempt's own scale, its answer and its changes. */
function callItem(attempt, call, go) {
  const whole = Math.max(attempt.end - attempt.start, 1);
  const begin = Math.min(Math.max((call.start - attempt.start) / whole, 0), 1);
  const end = Math.min(Math.max((call.end - attempt.start) / whole, begin + 0.01), 1);
  const bar = el("span", { class: `bar ${call.failed ? "failed" : call.write ? "write" : "read"}` });
  bar.style.marginInlineStart = `${begin * 100}%`;
  bar.style.inlineSize = `${(end - begin) * 100}%`;
  const number = call.id.slice(call.id.lastIndexOf(".") + 1);
  const item = el("li", { class: "call" },
    el("p", {}, el("b", {}, `.${number} `), el("bdi", {}, call.text), el("span", { class: "took" }, duration(call.end - call.start))),
    el("div", { class: "track", "aria-hidden": "true" }, bar));
  const facts = [
    call.error ? `✕ ${call.error}` : "",
    call.sends ? `sent ${call.sends} times` : "",
    call.version ? `new version ${call.version}` : "",
  ].filter(Boolean);
  if (facts.length) item.append(el("p", { class: "facts" }, facts.join(" · ")));
  item.append(...[diffs(call)].filter(Boolean));
  for (const link of attempt.to.filter((one) => one.call === call.id)) {
    item.append(el("p", { class: "facts" }, link.kind === "wrote" ? "triggered " : "a later change of it triggered ", jump(link.to, go), ` after ${duration(link.to.start - call.end)}`));
  }
  return item;
}

function textList(texts) {
  return el("ul", { class: "plain" }, ...texts.map((text) => el("li", {}, el("bdi", {}, text))));
}

/** The content of the panel; `go` shows another attempt. */
function detailsOf(attempt, go, close) {
  const group = GROUPS[attempt.group];
  const step = (to, text, label) => {
    const made = el("button", { type: "button", "aria-label": label, title: label, onclick: () => to && go(to) }, text);
    made.disabled = !to;
    return made;
  };
  const parts = [
    el("div", { class: "head" },
      el("h2", {}, attempt.id),
      el("span", { class: `badge ${attempt.group}` }, el("span", { "aria-hidden": "true" }, `${group.mark} `), group.name),
      el("span", { class: "grow" }),
      step(neighbour(attempt, -1), "←", "Previous attempt"), step(neighbour(attempt, 1), "→", "Next attempt"),
      el("button", { type: "button", "aria-label": "Close", title: "Close (Esc)", onclick: close }, "✕")),
    el("p", { class: "result" }, el("bdi", {}, attempt.result)),
    el("p", { class: "facts" }, [
      attempt.object, attempt.controller, moment(attempt.start, 3, true) + (clock.local ? "" : " UTC"),
      `waited ${duration(Math.max(attempt.start - attempt.ready, 0))}`, `took ${duration(attempt.end - attempt.start)}`,
      attempt.try ? `try ${attempt.try}` : "", `${inOrder.indexOf(attempt) + 1} of ${inOrder.length}`,
    ].filter(Boolean).join(" · ")),
  ];
  const causes = attempt.causes.map((cause, place) => causeItem(attempt, cause, place, go));
  if (attempt.more > 0) causes.push(el("li", {}, `and ${attempt.more} more, counted but not recorded`));
  parts.push(section("Why it ran", el("ol", { class: "causes" }, ...causes)));
  const calls = attempt.calls || [];
  parts.push(section("Calls", calls.length
    ? el("ol", { class: "calls" }, ...calls.map((call) => callItem(attempt, call, go)))
    : el("p", { class: "facts" }, "none")));
  if (attempt.background) parts.push(section("Background calls", el("ol", { class: "calls" }, ...attempt.background.map((call) => callItem(attempt, call, go)))));
  if (attempt.skipped) parts.push(section("Skipped", textList(attempt.skipped)));
  if (attempt.reads) parts.push(section("Reads", textList(attempt.reads)));
  if (attempt.events) parts.push(section("Events", textList(attempt.events)));
  if (attempt.echoes) parts.push(section("Echoes", el("p", {}, `${plural(attempt.echoes, "event")} of its own writes ignored`)));
  parts.push(section("Next", ...nextOf(attempt, go)));
  if (attempt.traceback) parts.push(section("Traceback", el("pre", {}, attempt.traceback.join("\n"))));
  return parts;
}

function nextOf(attempt, go) {
  const parts = attempt.to.length ? [] : [el("p", {}, el("bdi", {}, attempt.result))];
  if (attempt.where || attempt.errorId) parts.push(el("p", { class: "facts" }, [attempt.errorId, attempt.where].filter(Boolean).join(" · ")));
  for (const link of attempt.to) {
    const how = { wrote: `${link.call} triggered `, followed: `a later change of the object of ${link.call} triggered ` }[link.kind] || `${link.kind}: `;
    parts.push(el("p", { class: "facts" }, how, jump(link.to, go), ` after ${duration(link.to.start - attempt.end)}`));
  }
  return parts;
}
