// The timeline: an overview of everything, and below it the view with axis, causes, lanes and arrows.

const AXIS = 24;
const CAUSES = 30;
const CALL = 12;
const LEAST = 2.5; // width of the shortest attempt in pixels
const FONT = '11px ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const MARKS = {
  "initial list": "◇", added: "+", modified: "●", deleted: "−", resync: "○", retry: "↻", timer: "◷", again: "↺",
  manual: "◆", "code reloaded": "◆",
};

class Timeline {
  constructor(canvas, overview) {
    this.canvas = canvas;
    this.overview = overview;
    this.selected = null;
    this.hovered = null;
    this.brush = null; // [x, x] while a range is being selected
    this.folded = true;
    this.byObject = objects.length > 1 && objects.length <= MOST_OBJECTS;
    this.lay();
    this.fit();
    this.waiting = false;
  }

  /** Rebuilds the ruler after a change of folding. */
  lay() {
    this.ruler = new Ruler(stretches(attempts.map((one) => [Math.min(one.ready, one.start), one.end])), this.folded);
  }

  /** Shows everything. from..to are the view in the ruler's lengths. */
  fit() {
    const margin = this.ruler.length * 0.015;
    this.show(-margin, this.ruler.length + margin);
  }

  show(from, to) {
    const most = this.ruler.length * 1.03;
    const length = Math.min(Math.max(to - from, 40), most);
    const centre = (from + to) / 2;
    const margin = Math.max(this.ruler.length * 0.015, length * 0.45);
    const begin = Math.min(Math.max(centre - length / 2, -margin), this.ruler.length + margin - length);
    this.from = length >= most ? -this.ruler.length * 0.015 : begin;
    this.to = this.from + length;
    this.later();
  }

  zoom(factor, x = null) {
    const at = x === null ? this.middle() : this.from + ((x - this.left) / this.room) * (this.to - this.from);
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  /** The centre of a zoom by keys: the selected attempt, if it is visible. */
  middle() {
    const at = this.selected ? this.ruler.place(this.selected.start) : NaN;
    return at >= this.from && at <= this.to ? at : (this.from + this.to) / 2;
  }

  move(pixels) {
    const by = (pixels / this.room) * (this.to - this.from);
    this.show(this.from + by, this.to + by);
  }

  /** Scrolls to an attempt; `close` also zooms to it. */
  reveal(attempt, close = false) {
    const begin = this.ruler.place(Math.min(attempt.ready, attempt.start));
    const end = this.ruler.place(attempt.end);
    const length = this.to - this.from;
    if (close) this.show(begin - (end - begin) * 2, end + (end - begin) * 2);
    else if (begin < this.from + length * 0.05 || end > this.to - length * 0.05) {
      this.show((begin + end) / 2 - length / 2, (begin + end) / 2 + length / 2);
    }
    this.later();
  }

  x(time) {
    return this.left + ((this.ruler.place(time) - this.from) / (this.to - this.from)) * this.room;
  }

  time(x) {
    return this.ruler.time(this.from + ((x - this.left) / this.room) * (this.to - this.from));
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  /** Reads sizes and colours, which depend on window and theme. */
  measure() {
    const style = getComputedStyle(document.documentElement);
    this.color = (name) => style.getPropertyValue(`--${name}`).trim();
    this.width = this.canvas.parentElement.clientWidth;
    this.left = this.width >= 720 ? 112 : 0;
    this.room = this.width - this.left - 8;
    this.names = this.byObject ? objects : data.lanes;
    for (const one of attempts) one.lane = this.byObject ? one.objectLane : one.workerLane;
    const lanes = this.names.length;
    this.slice = lanes > 8 ? 17 : 24;
    this.called = lanes <= 8 && attempts.some((one) => one.calls);
    this.lane = (this.left ? 0 : 14) + this.slice + (this.called ? CALL + 4 : 0) + 10;
    this.height = AXIS + CAUSES + lanes * this.lane + 4;
    this.patterns = {};
    for (const [canvas, height] of [[this.canvas, this.height], [this.overview, 36]]) {
      const scale = window.devicePixelRatio || 1;
      canvas.style.height = `${height}px`;
      canvas.width = Math.round(this.width * scale);
      canvas.height = Math.round(height * scale);
      canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    }
    this.later();
  }

  top(attempt) {
    return AXIS + CAUSES + attempt.lane * this.lane + (this.left ? 4 : 18);
  }

  /** Colour and pattern: stripes for failures and dots for waiting are visible without colour. */
  fill(pen, group) {
    if (!this.patterns[group]) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 8;
      const brush = tile.getContext("2d");
      brush.fillStyle = this.color(group);
      brush.fillRect(0, 0, 8, 8);
      brush.strokeStyle = brush.fillStyle = this.color(`${group}-mark`);
      brush.lineWidth = 1.6;
      if (group === "failed") {
        for (const at of [-8, 0, 8]) {
          line(brush, brush.strokeStyle, at, 8, at + 8, 0);
        }
      } else if (group === "waiting") {
        for (const at of [2, 6]) brush.fillRect(at, at, 1.5, 1.5);
      } else if (group === "cut") {
        for (const at of [1, 5]) brush.fillRect(at, 0, 1.2, 8);
      }
      this.patterns[group] = pen.createPattern(tile, "repeat");
    }
    return this.patterns[group];
  }

  draw() {
    if (!this.width) return;
    const pen = this.canvas.getContext("2d");
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = FONT;
    pen.textBaseline = "middle";
    this.drawIdle(pen);
    this.drawAxis(pen);
    this.drawLanes(pen);
    pen.save();
    pen.beginPath();
    pen.rect(this.left, 0, this.width - this.left, this.height);
    pen.clip();
    const seen = this.inSight();
    this.drawArrows(pen, seen);
    this.drawSlices(pen, seen);
    this.drawCauses(pen, seen);
    if (this.selected) this.drawFrame(pen, this.selected, "ink", 2);
    if (this.hovered && this.hovered !== this.selected) this.drawFrame(pen, this.hovered, "ink", 1);
    if (this.brush) this.drawBrush(pen);
    pen.restore();
    this.drawOverview();
  }

  inSight() {
    const begin = this.time(this.left - 40);
    const end = this.time(this.width + 4);
    let low = 0;
    let high = inOrder.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (inOrder[middle].start < begin - longest) low = middle + 1;
      else high = middle;
    }
    const found = [];
    for (let at = low; at < inOrder.length && Math.min(inOrder[at].ready, inOrder[at].start) <= end; at += 1) {
      if (inOrder[at].end >= begin) found.push(inOrder[at]);
    }
    return found;
  }

  /** Marks folded periods, with their length if there is room. */
  drawIdle(pen) {
    const bottom = this.height;
    let said = -Infinity;
    for (const piece of this.ruler.pieces) {
      if (!piece.idle || piece.at + piece.length < this.from || piece.at > this.to) continue;
      const begin = this.x(piece.from);
      const width = this.x(piece.to) - begin;
      if (width < 5) continue;
      pen.fillStyle = this.color("idle");
      pen.fillRect(Math.max(begin, this.left), AXIS, width - Math.max(this.left - begin, 0), bottom - AXIS);
      const text = duration(piece.to - piece.from);
      const needed = pen.measureText(text).width;
      if (width < needed + 6 || begin < this.left || begin < said) continue;
      pen.fillStyle = this.color("faint");
      pen.fillText(text, begin + (width - needed) / 2, bottom - 9);
      said = begin + width;
    }
  }

  drawAxis(pen) {
    pen.lineWidth = 1;
    line(pen, this.color("line"), 0, AXIS - 0.5, this.width, AXIS - 0.5);
    let free = this.left + 2;
    this.said = "";
    for (const piece of this.ruler.pieces) {
      if (piece.idle || piece.at + piece.length < this.from || piece.at > this.to) continue;
      const begin = this.x(piece.from);
      const width = this.x(piece.to) - begin;
      free = this.drawTicks(pen, piece, begin, width, free);
    }
  }

  /** Draws the ticks of one piece; returns the x from which there is room for the next label. */
  drawTicks(pen, piece, begin, width, free) {
    const span = piece.to - piece.from;
    const step = stepFor((span / Math.max(width, 1)) * 96);
    const digits = step < 1e6 ? 3 : 0;
    const first = Math.ceil((Math.max(this.time(this.left), piece.from) + clock.base) / step) * step - clock.base;
    const ticks = [];
    for (let at = first; at <= piece.to && ticks.length < 200; at += step) {
      if (this.x(at) > this.width) break;
      ticks.push(at);
    }
    // A piece that is too short for a tick gets one at its start.
    if (!ticks.length && begin >= this.left) ticks.push(piece.from);
    for (const at of ticks) {
      const x = Math.round(this.x(at)) + 0.5;
      const day = this.day(at);
      const text = moment(at, digits, day !== this.said);
      const needed = pen.measureText(text).width;
      if (x < free || x + needed + 4 > this.width) continue;
      this.said = day;
      line(pen, this.color("grid"), x, AXIS, x, this.height);
      line(pen, this.color("line"), x, AXIS / 2 - 6, x, AXIS);
      pen.fillStyle = this.color("soft");
      pen.fillText(text, x + 3, AXIS / 2);
      free = x + needed + 14;
    }
    return free;
  }

  /** The date of a tick if the attempts span several days; only the first tick of a day shows it. */
  day(at) {
    return clock.days ? moment(at, -1, true).slice(0, 10) : "";
  }

  drawLanes(pen) {
    const bands = [["triggers", AXIS, CAUSES], ...this.names.map((name, at) => [name, AXIS + CAUSES + at * this.lane, this.lane])];
    for (const [name, top, height] of bands) {
      line(pen, this.color("grid"), 0, top + height - 0.5, this.width, top + height - 0.5);
      pen.fillStyle = this.color("soft");
      if (this.left) pen.fillText(cut(pen, name, this.left - 12), 4, top + (top === AXIS ? height / 2 : 4 + this.slice / 2));
      else if (top !== AXIS) pen.fillText(name, 4, top + 8);
    }
  }

  drawSlices(pen, seen) {
    // Where they are dense, the shortest attempts are thinner.
    const least = seen.length > this.room / 3 ? 1.2 : LEAST;
    const last = {}; // lane and group -> right end of what is drawn there, so that no pixel is painted twice
    for (const wanted of [false, true]) {
      for (const one of seen) {
        if (one.wanted !== wanted) continue;
        const begin = this.x(one.start);
        const width = Math.max(this.x(one.end) - begin, least);
        const key = `${one.lane} ${one.group} ${wanted}`;
        if (width <= least && last[key] > begin + least / 2) continue;
        last[key] = begin + width;
        this.drawSlice(pen, one, begin, width);
      }
    }
    pen.globalAlpha = 1;
  }

  drawSlice(pen, one, begin, width) {
    const top = this.top(one);
    pen.globalAlpha = one.wanted ? 1 : 0.15;
    const ready = this.x(Math.min(one.ready, one.start));
    if (begin - ready > 3) {
      pen.fillStyle = this.color("wait");
      pen.fillRect(ready, top + this.slice - 5, begin - ready, 4);
    }
    pen.fillStyle = this.fill(pen, one.group);
    pen.beginPath();
    if (width > 8) pen.roundRect(begin, top, width, this.slice, 3);
    else pen.rect(begin, top, width, this.slice);
    pen.fill();
    if (one.group === "failed" && one.wanted) {
      // Taller than the others, to be visible where all are thin.
      pen.fillRect(begin, top - 4, Math.min(width, 3), 4);
    }
    if (width > 16) this.drawText(pen, one, begin, width, top);
    if (this.called && width > 6) this.drawCalls(pen, one, top);
  }

  drawText(pen, one, begin, width, top) {
    const from = Math.max(begin, this.left) + 5;
    const room = begin + width - from - 4;
    const mark = GROUPS[one.group].mark;
    const name = data.single ? "" : `${one.object.slice(one.object.indexOf("/") + 1)}  `;
    const text = room > 60 ? `${mark} ${one.number}  ${name}${one.why}` : room > 26 ? `${mark} ${one.number}` : mark;
    const shown = cut(pen, text, room);
    if (one.group === "failed" || one.group === "waiting" || one.group === "cut") {
      pen.fillStyle = this.color(one.group);
      pen.fillRect(from - 3, top + 3, pen.measureText(shown).width + 6, this.slice - 6);
    }
    pen.fillStyle = this.color("on-slice");
    pen.fillText(shown, from, top + this.slice / 2 + 0.5);
  }

  drawCalls(pen, one, top) {
    for (const call of one.calls || []) {
      const begin = this.x(Math.max(call.start, one.start));
      const width = Math.max(this.x(Math.min(call.end, one.end)) - begin, 2);
      pen.fillStyle = this.color(call.failed ? "failed" : call.write ? "write" : "read");
      pen.fillRect(begin, top + this.slice + 2, width, CALL);
      if (width < 30) continue;
      const from = Math.max(begin, this.left) + 4;
      pen.fillStyle = this.color("on-slice");
      pen.fillText(cut(pen, call.text, begin + width - from - 3), from, top + this.slice + 2 + CALL / 2 + 0.5);
    }
  }

  drawCauses(pen, seen) {
    const taken = new Set();
    const y = AXIS + CAUSES / 2;
    const dense = seen.length > this.room / 14;
    const apart = dense ? 1 : 4;
    pen.textAlign = "center";
    for (const one of seen) {
      for (const cause of one.causes) {
        const x = Math.round(this.x(cause.at));
        if (taken.has(x) || x < this.left) continue;
        for (let near = -apart; near <= apart; near += 1) taken.add(x + near);
        const mark = MARKS[cause.kind] || "●";
        pen.globalAlpha = one.wanted ? 1 : 0.2;
        pen.fillStyle = this.color(cause.attempt ? "soft" : "cause");
        if (dense) pen.fillRect(x, y - (cause.attempt ? 2 : 5), 1, cause.attempt ? 4 : 10);
        else pen.fillText(mark, x, y);
      }
    }
    pen.textAlign = "start";
    pen.globalAlpha = 1;
  }

  /** From cause to effect: all arrows where attempts are few, else only those of the selected one. */
  drawArrows(pen, seen) {
    const chosen = this.selected || this.hovered;
    if (seen.length <= 80) {
      for (const one of seen) for (const link of one.from) if (link.from !== chosen && one !== chosen) this.drawArrow(pen, link, "arrow", 1);
    }
    if (chosen) for (const link of [...chosen.from, ...chosen.to]) this.drawArrow(pen, link, "accent", 1.6);
  }

  drawArrow(pen, link, color, width) {
    const call = (link.from.calls || []).find((one) => one.id === link.call);
    const x1 = this.x(call ? Math.min(call.end, link.from.end) : link.from.end);
    const x2 = this.x(link.to.start);
    if (Math.max(x1, x2) < this.left || Math.min(x1, x2) > this.width) return;
    const y1 = this.top(link.from) + (call && this.called ? this.slice + 2 + CALL : this.slice / 2);
    const y2 = this.top(link.to) + this.slice / 2;
    const bend = Math.max(Math.min(Math.abs(x2 - x1) / 2, 60), 8);
    const drop = link.from.lane === link.to.lane ? Math.min(16, this.lane / 3) : 0;
    pen.strokeStyle = pen.fillStyle = this.color(color);
    pen.lineWidth = width;
    pen.setLineDash({ wrote: [], followed: [1.5, 2.5] }[link.kind] || [5, 3]);
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.bezierCurveTo(x1 + bend, y1 + drop, x2 - bend, y2 + drop, x2 - 1, y2);
    pen.stroke();
    pen.setLineDash([]);
    triangle(pen, x2, y2, x2 - 6, y2 - 3.5, x2 - 6, y2 + 3.5);
  }

  drawFrame(pen, one, color, width) {
    const begin = this.x(one.start);
    const long = Math.max(this.x(one.end) - begin, LEAST);
    pen.strokeStyle = this.color(color);
    pen.lineWidth = width;
    pen.beginPath();
    pen.roundRect(begin - 2, this.top(one) - 2, long + 4, this.slice + 4, 4);
    pen.stroke();
    if (long < 12) {
      // A frame around a thin line is hard to see: a pointer above it is not.
      pen.fillStyle = this.color(color);
      const [x, y] = [begin + long / 2, this.top(one)];
      triangle(pen, x, y - 3, x - 5, y - 11, x + 5, y - 11);
    }
  }

  drawBrush(pen) {
    const [from, to] = this.brush;
    pen.fillStyle = this.color("brush");
    pen.fillRect(Math.min(from, to), 0, Math.abs(to - from), this.height);
    pen.fillStyle = this.color("ink");
    pen.fillText(duration(Math.abs(this.time(to) - this.time(from))), Math.min(from, to) + 4, AXIS + 9);
  }

  /** The number of attempts over time, the failures, and the part that is in view. */
  drawOverview() {
    const pen = this.overview.getContext("2d");
    const height = 36;
    const room = this.width - this.left - 8;
    const columns = Math.max(Math.floor(room / 3), 1);
    pen.clearRect(0, 0, this.width, height);
    const bins = Array.from({ length: columns }, () => ({ all: 0, failed: 0 }));
    for (const one of attempts) {
      if (!one.wanted) continue;
      const at = Math.min(Math.floor((this.ruler.place(one.start) / this.ruler.length) * columns), columns - 1);
      bins[at].all += 1;
      if (one.group === "failed") bins[at].failed += 1;
    }
    const most = Math.max(...bins.map((bin) => bin.all), 1);
    bins.forEach((bin, at) => {
      if (!bin.all) return;
      const x = this.left + (at / columns) * room;
      const tall = Math.max((bin.all / most) * (height - 12), 3);
      pen.fillStyle = this.color("read");
      pen.fillRect(x, height - 4 - tall, 2, tall);
      if (!bin.failed) return;
      pen.fillStyle = this.color("failed");
      pen.fillRect(x, height - 4 - Math.max((tall * bin.failed) / bin.all, 2), 2, Math.max((tall * bin.failed) / bin.all, 2));
      pen.fillRect(x - 0.5, 1, 3, 4);
    });
    const place = (length) => this.left + Math.min(Math.max(length / this.ruler.length, 0), 1) * room;
    const from = place(this.from);
    const to = Math.max(place(this.to), from + 3);
    pen.fillStyle = this.color("shade");
    pen.fillRect(this.left, 0, from - this.left, height);
    pen.fillRect(to, 0, this.left + room - to, height);
    pen.strokeStyle = this.color("soft");
    pen.lineWidth = 1;
    pen.strokeRect(from + 0.5, 0.5, Math.max(to - from - 1, 2), height - 1);
    if (!this.left) return;
    pen.font = FONT;
    pen.textBaseline = "middle";
    pen.fillStyle = this.color("soft");
    pen.fillText("all", 4, height / 2);
  }

  /** The attempt at a position, or the nearest one within 7 pixels. */
  at(x, y) {
    let best = null;
    let nearest = 7;
    for (const one of this.inSight()) {
      const top = this.top(one);
      if (!one.wanted || y < top - 5 || y > top + this.lane - 8) continue;
      const begin = this.x(one.start);
      const end = Math.max(this.x(one.end), begin + LEAST);
      const far = x < begin ? begin - x : x > end ? x - end : 0;
      if (far < nearest) {
        nearest = far;
        best = one;
      }
    }
    return best || this.caused(x, y);
  }

  /** The attempt whose cause is at a position. */
  caused(x, y) {
    if (y < AXIS || y > AXIS + CAUSES) return null;
    return this.inSight().find((one) => one.wanted && one.causes.some((cause) => Math.abs(this.x(cause.at) - x) < 7)) || null;
  }
}

function line(pen, color, x1, y1, x2, y2) {
  pen.strokeStyle = color;
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
}

function triangle(pen, x1, y1, x2, y2, x3, y3) {
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.lineTo(x3, y3);
  pen.fill();
}

/** The text, shortened to fit. */
function cut(pen, text, room) {
  const wide = pen.measureText("m").width; // the font has one width
  const most = Math.floor(room / wide);
  if (text.length <= most) return text;
  return most < 2 ? text.slice(0, Math.max(most, 0)) : `${text.slice(0, most - 1)}…`;
}
