// Who answered a cell, and how it went.

import { element, swatch } from "./dom.js";

const HINT = "Point at a cell, or move to one with the arrow keys.";

export class Inspector {
  constructor(root, legend) {
    this.root = root;
    this.legend = legend;
    this.show(null);
  }

  show(cell) {
    this.cell = cell;
    const parts = cell ? this.describe(cell) : [element("p", "quiet", HINT)];
    this.root.replaceChildren(...parts);
  }

  describe(cell) {
    const parts = [element("p", "where", `${cell.where}`)];
    if (!cell.reply) return [...parts, element("p", "quiet", "No answer yet.")];
    const list = element("dl");
    const { reply, shown } = cell;
    const titles = cell.keys.map((key) => this.legend.get(key).title).join(", ");
    line(list, "Shows", [titles || "Waiting"], "");
    line(list, "Face", [outcome(reply)], `${reply.ms} ms`, reply);
    const { smiley, color } = (reply.status === 200 && shown?.answered) || {};
    if (smiley) line(list, "Smiley", [element("span", "emoji", shown.smiley)], ms(smiley), smiley);
    if (color) line(list, "Color", [swatch(shown.color), shown.color], ms(color), color);
    parts.push(list);
    const errors = reply.status === 200 ? shown?.errors ?? [] : [text(reply.body)];
    if (errors.length) {
      const told = element("ul", "errors");
      for (const each of errors) told.append(element("li", "", each));
      parts.push(told);
    }
    return parts;
  }
}

function line(list, name, value, time, by = {}) {
  const said = element("dd");
  said.append(...value);
  list.append(element("dt", "", name), said, element("dd", "ms", time));
  const who = [by.pod, by.cluster && `cluster ${by.cluster}`].filter(Boolean).join(" · ");
  if (who) list.append(element("dd", "by", who));
}

function outcome({ status }) {
  if (status === null) return "no connection";
  return status === 200 ? "answered" : `HTTP ${status}`;
}

const ms = ({ ms: number }) => (number === undefined ? "" : `${number} ms`);

/** The error of an answer that was no face: JSON with errors, or plain text. */
function text(body) {
  try {
    const { errors } = JSON.parse(body);
    if (Array.isArray(errors) && errors.length) return errors.map(String).join("; ").slice(0, 400);
  } catch { /* then it is shown as it is */ }
  return body.trim().slice(0, 400) || "an empty answer";
}
