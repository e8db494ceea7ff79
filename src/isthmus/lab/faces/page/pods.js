// Which pods answered lately, and how much of it each did.

import { element, put, swatch } from "./dom.js";

const MEMORY = 30000; // ms that an answer counts
const QUIET = 5000; // ms after which a pod is shown as gone
const MOST = 24; // pods of one service that are shown

export class Pods {
  constructor(root) {
    this.root = root;
    this.answers = [];
  }

  /** Note who answered a cell. */
  note(cell) {
    const { reply, shown } = cell;
    if (!reply) return;
    const now = performance.now();
    const { smiley, color } = (reply.status === 200 && shown?.answered) || {};
    if (reply.pod) this.add("face", reply, now, reply.status === 200 ? "\u{1F642}" : "\u{1F615}");
    if (smiley?.pod) this.add("smiley", smiley, now, shown.smiley);
    if (color?.pod) this.add("color", color, now, shown.color);
  }

  add(service, { pod, cluster }, at, last) {
    this.answers.push({ service, name: `${pod}\n${cluster ?? ""}`, at, last });
  }

  /** Draw again what is different. */
  draw() {
    const now = performance.now();
    this.answers = this.answers.filter(({ at }) => now - at < MEMORY);
    const parts = [];
    for (const service of ["face", "smiley", "color"]) {
      const mine = this.answers.filter((answer) => answer.service === service);
      if (mine.length) parts.push(group(service, mine, now));
    }
    if (!parts.length) parts.push(element("p", "quiet", "Nobody has said yet who they are."));
    this.root.replaceChildren(...parts);
  }
}

function group(service, answers, now) {
  const by = new Map();
  for (const { name, at, last } of answers) {
    const pod = by.get(name) ?? { count: 0 };
    by.set(name, { count: pod.count + 1, at, last });
  }
  const list = element("ul");
  for (const [name, pod] of [...by].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, MOST)) {
    const share = Math.round((100 * pod.count) / answers.length);
    const line = element("li", now - pod.at > QUIET ? "gone" : "");
    const [podName, cluster] = name.split("\n");
    const title = element("span", "name", podName);
    if (cluster) title.append(element("small", "", `cluster ${cluster}`));
    title.style.setProperty("--share", `${share}%`);
    const mark = element("span", "emoji");
    if (service === "color") mark.append(swatch(pod.last));
    else put(mark, pod.last);
    line.append(mark, title, element("span", "share", `${share} %`));
    list.append(line);
  }
  const box = element("div");
  box.append(element("h3", "", service), list);
  return box;
}
