// The key: what each look means, and how many cells look so now.

import { element, put } from "./dom.js";
import { smileyText } from "./look.js";

export class Key {
  constructor(list, legend) {
    this.lines = new Map();
    for (const entry of legend.values()) {
      const line = element("li");
      const text = element("div");
      text.append(element("b", "", entry.title), element("span", "quiet", entry.meaning));
      const count = element("span", "count", "0");
      count.dataset.none = "";
      line.dataset.key = entry.key;
      line.append(tile(entry), text, count);
      list.append(line);
      this.lines.set(entry.key, { line, count });
    }
  }

  /** @param {Map<string, number>} counts cells by key */
  count(counts) {
    for (const [key, { count }] of this.lines) {
      const number = counts.get(key) ?? 0;
      put(count, String(number));
      count.setAttribute("aria-label", number === 1 ? "1 cell" : `${number} cells`);
      count.toggleAttribute("data-none", number === 0);
    }
  }

  /** Point at what a cell shows. */
  point(keys) {
    for (const [key, { line }] of this.lines) line.classList.toggle("here", keys.includes(key));
  }
}

function tile(entry) {
  const made = element("span", "tile");
  made.setAttribute("aria-hidden", "true");
  if (entry.border !== "dashed") {
    const face = element("span", "face", smileyText(entry.smiley));
    face.dataset.border = entry.border;
    face.style.setProperty("--fill", entry.color);
    made.append(face, element("span", "alarm", "!"));
    made.classList.add(entry.faded ? "faded" : "shown");
    if (entry.key !== "fine") made.classList.add("troubled");
  }
  return made;
}
