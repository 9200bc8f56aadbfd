// The attempts, their links and lanes, and the filter.

const data = JSON.parse(document.getElementById("story").textContent);
clock.base = data.base;
clock.days = data.days;

const GROUPS = {
  done: { name: "done", mark: "✓", outcomes: ["done", "after", "again"] },
  waiting: { name: "waiting", mark: "…", outcomes: ["waiting"] },
  failed: { name: "failed", mark: "✕", outcomes: ["retry", "terminal"] },
  cut: { name: "interrupted", mark: "⊘", outcomes: ["dropped", "interrupted"] },
  running: { name: "running", mark: "▸", outcomes: ["running"] },
};
const groupOf = {};
for (const [group, one] of Object.entries(GROUPS)) for (const outcome of one.outcomes) groupOf[outcome] = group;

const rows = Array.from(document.querySelectorAll("tr[data-i]"));
const attempts = data.attempts;
attempts.forEach((attempt, place) => {
  const row = rows[place];
  const cell = (name) => row.querySelector(`.${name}`).textContent;
  attempt.place = place;
  attempt.row = row;
  attempt.number = attempt.id.slice(attempt.id.lastIndexOf("-") + 1);
  attempt.group = groupOf[attempt.outcome];
  attempt.why = cell("why");
  attempt.did = cell("did");
  attempt.result = cell("out");
  attempt.wrote = (attempt.calls || []).some((call) => call.write && !call.failed);
  attempt.from = []; // links from its causes
  attempt.to = []; // links to its effects
  attempt.wanted = true;
});
const links = data.links.map(([kind, from, to, cause, call]) => ({ kind, from: attempts[from], to: attempts[to], cause, call }));
for (const link of links) {
  link.from.to.push(link);
  link.to.from.push(link);
}
// With more objects than this, lanes are by worker only.
const MOST_OBJECTS = 24;
const controllers = [...new Set(attempts.map((attempt) => attempt.controller))];
const namespaces = new Set(attempts.map((attempt) => attempt.object.split("/")[0]));
const laneOf = new Map();
for (const attempt of attempts) {
  const name = namespaces.size > 1 ? attempt.object : attempt.object.slice(attempt.object.indexOf("/") + 1);
  const lane = controllers.length > 1 ? `${name} ${attempt.controller}` : name;
  if (!laneOf.has(lane)) laneOf.set(lane, laneOf.size);
  attempt.objectLane = laneOf.get(lane);
  attempt.workerLane = attempt.lane;
}
const objects = [...laneOf.keys()];
const byId = new Map(attempts.map((attempt) => [attempt.id, attempt]));
// By start time: the order in which attempts are drawn and the keys move.
const inOrder = attempts.slice().sort((one, other) => one.start - other.start);
const longest = attempts.reduce((most, one) => Math.max(most, one.end - Math.min(one.ready, one.start)), 0);

/** The text that the filter searches, built at its first use. */
function words(attempt) {
  if (attempt.words === undefined) {
    const parts = [attempt.id, attempt.object, attempt.controller, attempt.why, attempt.did, attempt.result, attempt.outcome];
    for (const cause of attempt.causes) {
      parts.push(cause.text);
      for (const change of cause.changes || []) parts.push(change.path);
    }
    for (const call of attempt.calls || []) {
      parts.push(call.text, call.error || "");
      for (const change of call.changes || []) parts.push(change.path);
    }
    attempt.words = parts.join("\n").toLowerCase();
  }
  return attempt.words;
}

const filter = { text: "", groups: new Set(), controller: "" };

/** Marks the attempts that match every word and any selected outcome; returns their number. */
function sift() {
  const wanted = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const attempt of attempts) {
    attempt.wanted =
      (!filter.groups.size || filter.groups.has(attempt.group)) &&
      (!filter.controller || attempt.controller === filter.controller) &&
      wanted.every((word) => words(attempt).includes(word));
    if (attempt.wanted) count += 1;
  }
  return count;
}

/** The next (1) or previous (-1) matching attempt; the first or the last one if `attempt` is null. */
function neighbour(attempt, way) {
  let at = attempt ? inOrder.indexOf(attempt) + way : way > 0 ? 0 : inOrder.length - 1;
  while (at >= 0 && at < inOrder.length && !inOrder[at].wanted) at += way;
  return inOrder[at] || null;
}
