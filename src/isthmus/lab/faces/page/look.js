// What a cell shows after an answer. The gui has the same rules in legend.py.

export const PATIENCE = 4; // timeouts in a row during which a cell keeps what it shows

const CURSING = 0x1f92c, SLEEPING = 0x1f634, KABOOM = 0x1f92f;
const GREY = "#BBBBBB", RED = "#EE6677", YELLOW = "#CCBB44", PURPLE = "#AA3377";
const MEANS = {
  smiley: { [CURSING]: "smiley", [SLEEPING]: "late", [KABOOM]: "limited" },
  color: { [GREY]: "color", [RED]: "late", [YELLOW]: "limited" },
};
const CONFUSED = "\u{1F615}";

/** The text of `&#x1F603;`; what is no entity is shown as it is, but short. */
export function smileyText(written) {
  const hex = /^&#x([0-9a-f]{1,6});$/i.exec(written);
  const code = hex ? parseInt(hex[1], 16) : NaN;
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : String(written).slice(0, 4);
}

/** A color that a browser knows, or grey. */
export function safeColor(written) {
  return CSS.supports("color", written) ? written : GREY;
}

/**
 * @param {{status: number|null, body: string}} reply status null: there was none
 * @param {Map<string, object>} legend its entries by key
 */
export function look(reply, legend) {
  const as = (key) => {
    const entry = legend.get(key);
    return { keys: [key], smiley: smileyText(entry.smiley), color: entry.color, border: entry.border, errors: [] };
  };
  const { status } = reply;
  if (status === 200) return told(reply.body);
  if (status === 504 || status === 429) return { keys: ["timeout"], hold: true, errors: [] };
  if (status === 599) return as("stuck");
  if (status === null || (status >= 500 && status < 600)) return as("face");
  return as("refused");
}

function told(body) {
  let read;
  try {
    read = JSON.parse(body);
    if (read.smiley === undefined || read.color === undefined) throw new TypeError("no face");
  } catch {
    return { keys: ["face"], smiley: CONFUSED, color: PURPLE, border: "purple", errors: [] };
  }
  const errors = (read.errors ?? []).map(String);
  const smiley = smileyText(read.smiley);
  const keys = errors.length ? failures(smiley, read.color, errors) : ["fine"];
  return {
    keys, smiley, errors,
    color: safeColor(read.color),
    border: errors.length ? "purple" : "grey",
    answered: read.answered ?? {},
    latency: read.latency,
  };
}

// Who failed stands at the beginning of an error; how, is told by what stands for the answer.
function failures(smiley, color, errors) {
  const about = (part) => errors.some((error) => error.startsWith(part));
  const found = [];
  if (about("smiley")) found.push(MEANS.smiley[smiley.codePointAt(0)] ?? "smiley");
  if (about("color")) found.push(MEANS.color[color] ?? "color");
  return found.length ? [...new Set(found)] : ["limited"];
}
