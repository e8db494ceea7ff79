// The grid: cells that ask again every two seconds, and fade when nobody answers.

import { PATIENCE, look } from "./look.js";
import { element, put } from "./dom.js";

const EVERY = 2000; // ms from one request of a cell to the next
const ROW = 500, COLUMN = 125; // ms by which the first requests are apart
const GIVE_UP = 10000; // ms after which an answer counts as timed out
const SLOW = 2000; // ms without news after which a cell begins to fade
const FADE = 500; // ms until it has faded
const WATCH = 200; // ms between two looks at what is slow

export class Grid {
  /** `news(cell)` is called after every answer, `chosen(cell)` when a cell is pointed at. */
  constructor(root, settings, legend, { headers, news, chosen }) {
    this.root = root;
    this.settings = settings;
    this.legend = legend;
    this.headers = headers;
    this.news = news;
    this.cells = [];
    this.active = false;
    this.build(chosen);
    setInterval(() => this.watch(), WATCH);
  }

  build(chosen) {
    const { rows, columns, edge } = this.settings;
    this.root.style.setProperty("--columns", columns);
    this.root.setAttribute("aria-label", `Faces, ${rows} rows of ${columns}`);
    this.root.setAttribute("aria-rowcount", rows);
    this.root.setAttribute("aria-colcount", columns);
    if (rows > 2 * edge && columns > 2 * edge && edge > 0) {
      const middle = element("div", "middle");
      middle.setAttribute("aria-hidden", "true");
      middle.style.gridArea = `${edge + 1} / ${edge + 1} / ${rows - edge + 1} / ${columns - edge + 1}`;
      this.root.append(middle);
    }
    for (let row = 0; row < rows; row += 1) {
      const line = element("div", "row");
      line.setAttribute("role", "row");
      for (let col = 0; col < columns; col += 1) {
        const cell = new Cell(this, row, col, this.part(row, col));
        this.cells.push(cell);
        line.append(cell.node);
      }
      this.root.append(line);
    }
    this.cells[0].node.tabIndex = 0;
    this.listen(chosen);
  }

  part(row, col) {
    const { rows, columns, edge } = this.settings;
    const inner = row >= edge && row < rows - edge && col >= edge && col < columns - edge;
    return inner ? "center" : "edge";
  }

  listen(chosen) {
    const cellOf = (event) => this.cells.find((cell) => cell.node.contains(event.target));
    this.root.addEventListener("pointerover", (event) => chosen(cellOf(event) ?? null, "pointer"));
    this.root.addEventListener("pointerleave", () => chosen(null, "pointer"));
    this.root.addEventListener("focusin", (event) => chosen(cellOf(event) ?? null, "focus"));
    this.root.addEventListener("focusout", () => chosen(null, "focus"));
    this.root.addEventListener("click", (event) => cellOf(event) && this.focus(cellOf(event)));
    this.root.addEventListener("keydown", (event) => this.key(event, cellOf(event)));
  }

  key(event, cell) {
    if (event.ctrlKey && !["Home", "End"].includes(event.key)) return;
    if (event.altKey || event.metaKey) return;
    if (!cell) { // the grid itself has the focus: the skip link leads here
      if (event.key.startsWith("Arrow")) this.focus(this.cells[0]);
      return;
    }
    const { rows, columns } = this.settings;
    let { row, col } = cell;
    switch (event.key) {
      case "ArrowUp": row -= 1; break;
      case "ArrowDown": row += 1; break;
      case "ArrowLeft": col -= 1; break;
      case "ArrowRight": col += 1; break;
      case "PageUp": row = 0; break;
      case "PageDown": row = rows - 1; break;
      case "Home": col = 0; if (event.ctrlKey) row = 0; break;
      case "End": col = columns - 1; if (event.ctrlKey) row = rows - 1; break;
      case "Enter": case " ": cell.ask(); break;
      default: return;
    }
    event.preventDefault();
    if (row >= 0 && row < rows && col >= 0 && col < columns) this.focus(this.cells[row * columns + col]);
  }

  focus(cell) {
    for (const each of this.cells) each.node.tabIndex = each === cell ? 0 : -1;
    cell.node.focus();
  }

  /** Begin; the first time the cells start one after the other, as a scan. */
  start() {
    const first = !this.begun;
    this.begun = this.active = true;
    const now = performance.now();
    for (const cell of this.cells) {
      cell.touched = now;
      cell.again(first ? cell.row * ROW + cell.col * COLUMN : 0);
    }
  }

  stop() {
    this.active = false;
    for (const cell of this.cells) cell.rest();
  }

  watch() {
    if (!this.active) return;
    const now = performance.now();
    for (const cell of this.cells) cell.weigh(now);
  }
}

class Cell {
  constructor(grid, row, col, part) {
    Object.assign(this, { grid, row, col, part, touched: 0, timeouts: 0, shown: null, slow: false });
    this.face = element("span", "face");
    this.badge = element("span", "badge");
    const alarm = element("span", "alarm", "!");
    for (const each of [this.face, this.badge, alarm]) each.setAttribute("aria-hidden", "true");
    this.node = element("div", "cell");
    this.node.append(this.face, alarm, this.badge);
    this.node.tabIndex = -1;
    this.node.setAttribute("role", "gridcell");
    this.node.style.gridArea = `${row + 1} / ${col + 1}`;
    this.say();
  }

  get where() {
    return `Row ${this.row + 1}, column ${this.col + 1}, ${this.part}`;
  }

  /** The lines of the key that say what is seen. */
  get keys() {
    return this.slow ? ["slow"] : this.shown?.keys ?? [];
  }

  again(delay) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), delay);
  }

  rest() {
    clearTimeout(this.timer);
  }

  async ask() {
    if (this.busy) return;
    clearTimeout(this.timer);
    this.busy = true;
    const start = performance.now();
    const reply = await this.fetch();
    this.busy = false;
    reply.ms = Math.round(performance.now() - start);
    this.take(reply);
    if (this.grid.active) this.again(Math.max(0, EVERY - (performance.now() - start)));
  }

  async fetch() {
    const query = new URLSearchParams({ row: this.row, col: this.col, now: new Date().toISOString() });
    try {
      const response = await fetch(`face/${this.part}/?${query}`, {
        headers: { "Cache-Control": "no-cache", "X-Custom-Header": "custom", ...this.grid.headers() },
        credentials: "same-origin",
        signal: AbortSignal.timeout(GIVE_UP),
      });
      const body = await response.text();
      const said = (name) => response.headers.get(name) ?? "";
      return { status: response.status, body, pod: said("X-Faces-Pod"), cluster: said("X-Faces-Cluster") };
    } catch (fault) {
      const late = fault.name === "TimeoutError";
      return { status: late ? 504 : null, body: late ? "no answer in ten seconds" : "no connection", pod: "", cluster: "" };
    }
  }

  take(reply) {
    const seen = look(reply, this.grid.legend);
    this.reply = reply;
    this.touched = performance.now();
    this.timeouts = seen.hold ? this.timeouts + 1 : 0;
    this.slow = false;
    if (!seen.hold) this.show(seen);
    else if (this.timeouts > PATIENCE) this.show(this.asleep());
    this.mark();
    this.say();
    this.grid.news(this);
  }

  asleep() {
    const entry = this.grid.legend.get("timeout");
    return { ...look({ status: 599 }, new Map([["stuck", entry]])), keys: ["timeout"], faded: true };
  }

  show(seen) {
    this.shown = seen;
    put(this.face, seen.smiley);
    this.face.dataset.border = seen.border;
    this.face.style.setProperty("--fill", seen.color);
    this.node.classList.remove("pop");
    void this.node.offsetWidth; // so that the animation begins again
    this.node.classList.add("pop");
  }

  mark() {
    const { classList, dataset } = this.node;
    classList.toggle("shown", this.shown !== null);
    classList.toggle("faded", Boolean(this.shown?.faded));
    classList.toggle("slow", this.slow);
    classList.toggle("troubled", this.keys.some((key) => key !== "fine" && key !== "slow"));
    dataset.keys = this.keys.join(" ");
    put(this.badge, String(this.timeouts));
    if (this.timeouts) dataset.count = this.timeouts;
    else delete dataset.count;
  }

  /** Fade if there was no news for a while: from then on it says so. */
  weigh(now) {
    const slow = now - this.touched > SLOW + FADE / 2;
    if (slow === this.slow) return;
    this.slow = slow;
    this.mark();
    this.say();
    this.grid.news(this);
  }

  say() {
    const titles = this.keys.map((key) => this.grid.legend.get(key).title);
    const late = this.timeouts ? `, ${this.timeouts} timeouts in a row` : "";
    const seen = this.shown && !this.slow ? `${this.shown.smiley} ` : "";
    this.node.setAttribute("aria-label", `${this.where}: ${seen}${titles.join(", ") || "waiting"}${late}`);
  }
}
