// Everything together.

import { put } from "./dom.js";
import { Grid } from "./grid.js";
import { Inspector } from "./inspector.js";
import { Key } from "./key.js";
import { Pods } from "./pods.js";

const SPEAK = 10000; // ms between two spoken summaries
const FIRST = 3000; // ms until the first one
const byId = (id) => document.getElementById(id);

const settings = JSON.parse(byId("settings").textContent);
const legend = new Map(settings.legend.map((entry) => [entry.key, entry]));
if (settings.background) document.body.style.background = settings.background;

let user = settings.user;
const key = new Key(byId("entries"), legend);
const inspector = new Inspector(byId("details"), legend);
const pods = new Pods(byId("shares"));
const chosen = { pointer: null, focus: null };
const grid = new Grid(byId("grid"), settings, legend, {
  headers: () => (user ? { [settings.user_header]: user } : {}),
  news(cell) {
    pods.note(cell);
    if (inspector.cell === cell) choose();
    later();
  },
  chosen(cell, how) {
    chosen[how] = cell;
    choose();
  },
});

/** The pointer's cell, or else the keyboard's. */
function choose() {
  const cell = chosen.pointer ?? chosen.focus;
  inspector.show(cell);
  key.point(cell?.keys ?? []);
}

// ------------------------------------------------------------------------ counts, once a frame

let waiting = false;
function later() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    count();
  });
}

let summary = "";
function count() {
  const counts = new Map();
  for (const cell of grid.cells) for (const each of cell.keys) counts.set(each, (counts.get(each) ?? 0) + 1);
  key.count(counts);
  const fine = counts.get("fine") ?? 0;
  const rest = [...legend.values()].filter((entry) => entry.key !== "fine" && counts.get(entry.key));
  const said = rest.map((entry) => `${counts.get(entry.key)} ${entry.title.toLowerCase()}`);
  summary = [`${fine} of ${grid.cells.length} well`, ...said].join(" · ");
  put(byId("summary"), summary);
}

// Readers of the screen hear it now and then, not sixteen times in two seconds.
const speak = () => put(byId("spoken"), summary);
setTimeout(speak, FIRST);
setInterval(speak, SPEAK);
setInterval(() => byId("answers").hidden || pods.draw(), 1000);

// ------------------------------------------------------------------------------ the tools

function run(active) {
  if (active) grid.start();
  else grid.stop();
  put(byId("run").querySelector(".word"), active ? "Stop" : "Start");
  byId("run").classList.toggle("stopped", !active);
}
byId("run").addEventListener("click", () => run(!grid.active));

function toggle(id, on, apply) {
  const button = byId(id);
  const set = (value) => {
    button.setAttribute("aria-pressed", String(value));
    apply(value);
  };
  button.addEventListener("click", () => set(button.getAttribute("aria-pressed") !== "true"));
  set(on);
}
toggle("counters", false, (on) => byId("grid").classList.toggle("counting", on));
toggle("legend", !settings.hide_key, (on) => { byId("key").hidden = !on; });
toggle("pods", settings.show_pods, (on) => {
  byId("answers").hidden = !on;
  if (on) pods.draw();
});

function sayUser() {
  put(byId("user-now"), user ? `asking as ${user}` : "asking without a name");
}
byId("user").value = user;
byId("user-form").addEventListener("submit", (event) => {
  event.preventDefault();
  user = byId("user").value.trim().replace(/[^\x20-\x7e]/g, "");
  byId("user").value = user;
  sayUser();
  for (const cell of grid.cells) cell.ask();
});
sayUser();
count();
document.querySelector("main").classList.add("ready");
run(settings.active);
