// The console's script. Every page works without it, except live rows and the verification of receipts.
// Texts of others become text nodes alone.

const $ = (id) => document.getElementById(id);
const utf8 = new TextEncoder();

// --- texts, as internal/printable writes them

const hidden = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const text = (s) => String(s ?? "").replace(hidden, (c) => c.split("").map((u) => "\\u" + u.charCodeAt(0).toString(16).padStart(4, "0")).join(""));
const short = (s) => {
  const all = [...text(s)];
  return all.length <= 96 ? all.join("") : all.slice(0, 96).join("") + "…";
};

function money(cost) {
  if (!cost) return "";
  try {
    const digits = new Intl.NumberFormat("en", { style: "currency", currency: cost.currency }).resolvedOptions().maximumFractionDigits;
    const all = String(cost.amount_minor).padStart(digits + 1, "0");
    return (digits ? all.slice(0, -digits) + "." + all.slice(-digits) : all) + " " + cost.currency;
  } catch {
    return `${cost.amount_minor} minor units of ${short(cost.currency)}`;
  }
}

// --- live rows

const most = 200;

function rowOf(decision) {
  const row = $("row").content.firstElementChild.cloneNode(true);
  const [time, outcome, agent, action, resource, why] = row.cells;
  row.dataset.id = decision.decision_id;
  const at = new Date(decision.decided_at);
  time.firstChild.dateTime = decision.decided_at;
  time.firstChild.textContent = at.toISOString().slice(0, 19).replace("T", " ") + " UTC";
  outcome.firstChild.textContent = decision.decision;
  outcome.firstChild.classList.add(decision.decision);
  agent.textContent = short(decision.agent_id);
  action.firstChild.textContent = short(decision.action_type);
  action.firstChild.href = "/console/decisions/" + encodeURIComponent(decision.decision_id);
  action.lastChild.textContent = money(decision.cost);
  resource.textContent = short(decision.resource);
  const decides = (decision.findings ?? []).findIndex((f) => f.decides);
  why.textContent = short((decision.reasons ?? [])[Math.max(0, decides)]);
  row.classList.add("new");
  return row;
}

function live(button) {
  const body = $("rows").tBodies[0];
  const status = $("live-status");
  let source, waiting = [], paused = false, due = false, last = "";
  const say = (words) => { if (last !== words) status.textContent = last = words; };
  const show = () => {
    due = false;
    if (waiting.length === 0) return;
    const seen = new Set([...body.rows].map((r) => r.dataset.id));
    const fresh = waiting.filter((d) => !seen.has(d.decision_id) && seen.add(d.decision_id));
    waiting = [];
    // Rows of several replicas arrive in any order, so each goes where its time is.
    fresh.sort((a, b) => (a.decided_at < b.decided_at ? 1 : -1));
    let next = body.firstElementChild;
    for (const decision of fresh) {
      while (next && next.cells[0].firstChild.dateTime > decision.decided_at) next = next.nextElementSibling;
      body.insertBefore(rowOf(decision), next);
    }
    while (body.rows.length > most) body.lastElementChild.remove();
    $("rows").hidden = false;
    $("none")?.remove();
  };
  const later = () => {
    if (due || paused || waiting.length === 0) return;
    due = true;
    setTimeout(show, 200);
  };
  const open = () => {
    source = new EventSource(button.dataset.stream);
    source.onopen = () => say("New decisions appear here.");
    source.onmessage = (e) => {
      waiting.push(JSON.parse(e.data));
      if (waiting.length > most) waiting = waiting.slice(-most);
      if (paused) say("Paused. New decisions wait.");
      later();
    };
    source.addEventListener("skipped", (e) => say(`${JSON.parse(e.data).count} decisions came too fast to be shown: load the page to see them.`));
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) return say("Connecting again…");
      say("New decisions do not appear any more: load the page again.");
    };
  };
  button.hidden = false;
  button.onclick = () => {
    paused = !paused;
    button.textContent = paused ? "Resume" : "Pause";
    say(paused ? "Paused." : "New decisions appear here.");
    later();
  };
  open();
}

// --- receipts: package storage/receipt of writ describes the format

const bytes = (...parts) => {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  parts.reduce((at, p) => (out.set(p, at), at + p.length), 0);
  return out;
};
const sha256 = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes(...parts)));
const digest = async (value) => "sha256:" + (await sha256(utf8.encode(canonical(value)))).toHex();

// canonical is RFC 8785 of texts, integers, arrays and objects.
function canonical(v) {
  if (Array.isArray(v)) return `[${v.map(canonical)}]`;
  if (v === null || typeof v !== "object") return JSON.stringify(v);
  return `{${Object.keys(v).sort().map((k) => JSON.stringify(k) + ":" + canonical(v[k]))}}`;
}

function base64url(s) {
  if (!/^[\w-]*$/.test(s)) throw new Error("a text of the receipt is not base64url");
  return Uint8Array.from(atob(s.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
}

async function rootOf(node, index, size, proof) {
  if (index >= size) throw new Error("the place in the head is not below its size");
  for (let width = size; width > 1; index >>>= 1, width = Math.ceil(width / 2)) {
    const sibling = index ^ 1;
    if (sibling >= width) continue;
    const hash = proof.subarray(0, 32);
    if (hash.length < 32) throw new Error("the path to the head is too short");
    node = await (sibling < index ? sha256([1], hash, node) : sha256([1], node, hash));
    proof = proof.subarray(32);
  }
  if (proof.length > 0) throw new Error("the path to the head is too long");
  return node;
}

// verify throws unless one of keys has signed row as it is.
async function verify(row, keys) {
  const { receipt, audit_digest, settlement, approval, ...audited } = row;
  if (!receipt) throw new Error("the decision has no receipt");
  if (audit_digest && (await digest(audited)) !== audit_digest) throw new Error("the row is not the one that was signed");
  const payload = { audit_digest, decision: row.decision, exp: receipt.exp };
  for (const name of ["approval_id", "decision_id", "intent_digest", "intent_id", "organization_id", "policy_id", "policy_version", "reasons"]) {
    payload[name] = row[name];
  }
  for (const name in payload) if (payload[name] === undefined) delete payload[name];
  if (receipt.decision !== row.decision || receipt.decision_id !== row.decision_id) throw new Error("the receipt is of another decision");
  if ((await digest(payload)) !== receipt.digest) throw new Error("the row is not what the receipt covers");
  const jwk = keys.find((k) => k.kid === receipt.kid && k.kty === "OKP" && k.crv === "Ed25519");
  if (!jwk) throw new Error("the server publishes no key with the receipt's kid");
  const sig = base64url(receipt.sig);
  if (sig.length < 137 || sig[0] !== 1) throw new Error("the signature has another form");
  const view = new DataView(sig.buffer);
  const { decision, decision_id, digest: of, exp, kid } = receipt;
  const leaf = await sha256([0], utf8.encode(JSON.stringify({ decision, decision_id, digest: of, exp, kid })));
  const root = await rootOf(leaf, view.getUint32(133), view.getUint32(25), sig.subarray(137));
  const head = bytes(utf8.encode("writ/head/v1\n"), sig.subarray(1, 69), root);
  const key = await crypto.subtle.importKey("raw", base64url(jwk.x), "Ed25519", false, ["verify"]);
  if (!(await crypto.subtle.verify("Ed25519", key, sig.subarray(69, 133), head))) throw new Error("the key did not sign this");
}

async function prove(status) {
  try {
    if (!window.crypto?.subtle) throw new Error("this browser verifies over https or on localhost alone");
    const answer = await fetch("/.well-known/jwks.json", { cache: "no-store", credentials: "omit" });
    if (!answer.ok) throw new Error("the server's keys cannot be read");
    await verify(JSON.parse(status.dataset.row), (await answer.json()).keys);
    status.textContent = "verified";
    status.className = "allow";
  } catch (e) {
    const why = e instanceof DOMException ? "this browser cannot verify Ed25519" : e.message;
    status.textContent = "not verified: " + why;
    status.className = "deny";
  }
}

// --- sign-in by a link: the token is in the fragment, which leaves the address at once

function linked() {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  try {
    const claims = JSON.parse(new TextDecoder().decode(base64url(token.split(".")[1])));
    $("linked-org").textContent = short(claims.org_id);
    $("linked").hidden = false;
  } catch {
    return; // no operator token
  }
  $("credential").value = token;
}

// --- keys

function help() {
  let dialog = $("help");
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.id = "help";
    dialog.setAttribute("aria-label", "Keys");
    for (const [key, does] of [["/", "filters"], ["j", "next row"], ["k", "row before"], ["Enter", "opens the row"], ["?", "this help"]]) {
      const line = document.createElement("p"), k = document.createElement("kbd");
      k.textContent = key;
      line.append(k, " " + does);
      dialog.append(line);
    }
    const form = document.createElement("form"), button = document.createElement("button");
    form.method = "dialog";
    button.textContent = "Close";
    form.append(button);
    dialog.append(form);
    document.body.append(dialog);
  }
  dialog.showModal();
}

function move(by) {
  const rows = [...document.querySelectorAll("main .rows tbody tr")].filter((r) => r.querySelector("a"));
  const at = rows.findIndex((r) => r.classList.contains("at"));
  const to = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  if (!to) return;
  rows[at]?.classList.remove("at");
  to.classList.add("at");
  to.querySelector("a").focus();
}

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, dialog")) return;
  const filter = document.querySelector("#filters select, #filters input");
  if (e.key === "/" && filter) filter.focus();
  else if (e.key === "j") move(1);
  else if (e.key === "k") move(-1);
  else if (e.key === "?") help();
  else return;
  e.preventDefault();
});

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.onclick = async () => {
    await navigator.clipboard.writeText($(button.dataset.copy).textContent);
    button.textContent = "Copied";
  };
}

if ($("live")) live($("live"));
if ($("verify")) prove($("verify"));
if ($("signin")) linked();
