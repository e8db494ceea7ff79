// Fills the page from /overview, again and again. Whatever comes is text: nothing is read as HTML.

const EVERY = 3000;
const PATIENCE = 10000;

const by = (id) => document.getElementById(id);

function cell(value, kind = "") {
  const made = document.createElement("td");
  made.textContent = value;
  if (kind) made.className = kind;
  return made;
}

function fill(name, rows) {
  const table = by(name);
  table.hidden = rows.length === 0;
  by(`${name}-empty`).hidden = rows.length !== 0;
  table.tBodies[0].replaceChildren(
    ...rows.map((cells) => {
      const row = document.createElement("tr");
      row.append(...cells);
      return row;
    }),
  );
}

function since(text) {
  if (!text) return "";
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(text)) / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
}

function gateway(link) {
  if (!link.gateway) return "none";
  if (link.gatewayAlive === null) return "not asked yet";
  return link.gatewayAlive ? "alive" : "dead";
}

function trouble(one) {
  const where = one.namespace ? `${one.namespace}/${one.name}` : one.name;
  return [cell(`${one.resource} ${where}`), cell(`${one.type} is ${one.status}`, "bad"), cell(one.reason), cell(one.message)];
}

function linked(one) {
  const kind = one.state === "synced" ? "good" : "bad";
  const message = one.state === "synced" && !one.reason ? "" : [one.reason, one.message].filter(Boolean).join(": ");
  return [cell(one.cluster || one.link), cell(one.state, kind), cell(since(one.since)), cell(one.objects ?? ""), cell(gateway(one)), cell(message)];
}

function proxy(one) {
  const sum = (of) => one.types.reduce((total, type) => total + of(type), 0);
  const rejected = sum((type) => type.rejected.length);
  return [
    cell(one.proxy),
    cell(one.agent),
    cell(since(one.since)),
    cell(sum((type) => type.sent), "number"),
    cell(sum((type) => type.waiting), "number"),
    cell(rejected, rejected ? "number bad" : "number"),
    cell(one.scope.join(", ")),
  ];
}

function show(found) {
  by("cluster").textContent = found.cluster;
  document.title = `${found.cluster} · Isthmus`;
  const reasons = Object.entries(found.reasons).map(([part, why]) => `${part}: ${why}`);
  by("state").textContent = reasons.length ? `not ready: ${reasons.join("; ")}` : `ready, version ${found.version}`;
  by("state").className = reasons.length ? "bad" : "good";
  fill("troubles", found.troubles.map(trouble));
  fill("links", found.links.map(linked));
  fill("proxies", found.proxies.map(proxy));
  document.body.classList.remove("stale");
}

async function ask() {
  try {
    const answer = await fetch("/overview", { signal: AbortSignal.timeout(PATIENCE) });
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    show(await answer.json());
  } catch (fault) {
    document.body.classList.add("stale");
    by("state").textContent = `no news: ${fault.message}`;
    by("state").className = "bad";
  }
  setTimeout(ask, EVERY);
}

ask();
