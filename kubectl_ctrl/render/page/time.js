// Texts of times and durations, and the time scale. All times are microseconds since clock.base.

const clock = { base: 0, local: false, days: false }; // days: the attempts span several days, so times need dates

function pad(value, digits) {
  return String(value).padStart(digits, "0");
}

/** `12:00:01.250`; digits: 0 for whole seconds, -1 for none; withDay: with the date. */
function moment(at, digits = 3, withDay = false) {
  const date = new Date((clock.base + at) / 1000);
  const part = (name) => (clock.local ? date[`get${name}`]() : date[`getUTC${name}`]());
  let text = `${pad(part("Hours"), 2)}:${pad(part("Minutes"), 2)}`;
  if (digits >= 0) text += `:${pad(part("Seconds"), 2)}`;
  if (digits > 0) text += `.${pad(part("Milliseconds"), 3).slice(0, digits)}`;
  return withDay ? `${part("FullYear")}-${pad(part("Month") + 1, 2)}-${pad(part("Date"), 2)} ${text}` : text;
}

/** As Go writes durations, short: `840µs`, `8ms`, `1.2s`, `3m10s`, `2h5m`. */
function duration(micros) {
  if (micros < 0) return "-" + duration(-micros);
  if (micros < 999.5) return `${Math.round(micros)}µs`;
  if (micros < 9950) return `${(micros / 1000).toFixed(1).replace(".0", "")}ms`;
  if (micros < 999500) return `${Math.round(micros / 1000)}ms`;
  if (micros < 9950000) return `${(micros / 1e6).toFixed(1).replace(".0", "")}s`;
  const whole = Math.round(micros / 1e6);
  for (const [size, unit, smaller, sub] of [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"]]) {
    if (whole < size) continue;
    const rest = Math.floor((whole % size) / smaller);
    return `${Math.floor(whole / size)}${unit}` + (rest ? `${rest}${sub}` : "");
  }
  return `${whole}s`;
}

/**
 * Maps time to length. Unfolded, both are the same. Folded, an idle period is at most as long as an average busy one,
 * so that attempts of milliseconds are visible beside each other although hours lie between them.
 */
class Ruler {
  /** `busy`: disjoint [begin, end] in order. */
  constructor(busy, folded) {
    this.pieces = []; // {from, to, at, length, idle}: time from..to lies at..at+length
    const gaps = Math.max(busy.length - 1, 1);
    const total = busy.reduce((sum, [begin, end]) => sum + (end - begin), 0);
    const most = folded ? Math.max(total / gaps, 1000) : Infinity;
    let at = 0;
    const add = (from, to, length, idle) => {
      this.pieces.push({ from, to, at, length, idle });
      at += length;
    };
    busy.forEach(([begin, end], place) => {
      if (place) {
        const gap = begin - busy[place - 1][1];
        add(busy[place - 1][1], begin, Math.min(gap, most), gap > most);
      }
      add(begin, end, Math.max(end - begin, 1), false);
    });
    this.length = at || 1;
  }

  /** The piece with the last `name` (`from` or `at`) that is not above `value`. */
  piece(name, value) {
    let low = 0;
    let high = this.pieces.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.pieces[middle][name] <= value) low = middle;
      else high = middle - 1;
    }
    return this.pieces[low];
  }

  place(time) {
    if (!this.pieces.length) return 0;
    const one = this.piece("from", time);
    return one.at + ((time - one.from) / Math.max(one.to - one.from, 1)) * one.length;
  }

  time(place) {
    if (!this.pieces.length) return 0;
    const one = this.piece("at", place);
    return one.from + ((place - one.at) / Math.max(one.length, 1e-9)) * (one.to - one.from);
  }
}

/** The busy periods: overlapping spans are merged. */
function stretches(spans) {
  const sorted = spans.slice().sort((one, other) => one[0] - other[0]);
  const found = [];
  for (const [begin, end] of sorted) {
    const last = found[found.length - 1];
    if (last && begin <= last[1]) last[1] = Math.max(last[1], end);
    else found.push([begin, Math.max(end, begin + 1)]);
  }
  return found;
}

// Distances of ticks.
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 15e6, 3e7,
  6e7, 12e7, 3e8, 6e8, 9e8, 18e8, 36e8, 72e8, 108e8, 216e8, 432e8, 864e8];

function stepFor(least) {
  return STEPS.find((step) => step >= least) || Math.ceil(least / 864e8) * 864e8;
}
