// The page: reads the graph again and again, and connects the graph, the list, the details, the plans and the keys.

import * as api from "./api.js";
import { STATES, announce, badge, byId, element } from "./dom.js";
import { createGraph } from "./graph.js";
import { createList } from "./list.js";
import { diffText, showObject } from "./panel.js";
import { edges, found, link, nodes, readLink, state } from "./state.js";

const RETRY = 2000; // milliseconds until the next attempt after an error
const PAUSE = 100; // between two answers, so that drawing and input have time

const graph = createGraph(byId("graph"), { select: (node) => select(node.object, true), hover });
const list = createList(byId("list"), byId("rows"), {
  choose: (node) => select(node.object, !byId("panel").hidden),
  open: (node) => select(node.object, true),
});
let polling = null; // the controller that ends the current loop
let opened = ""; // the object of the panel

// --- The loop -----------------------------------------------------------------------------------------------------------

async function start() {
  takeToken();
  if (!api.token()) return signIn("");
  try {
    state.about = await api.about();
  } catch (error) {
    return failed(error, start);
  }
  const { user, target, version, namespaces, defaultNamespace, anyNamespace } = state.about;
  byId("user").textContent = user || target;
  byId("user").title = `${user ? `${user}, ` : ""}${target}, Purlin ${version}`;
  byId("namespaces").replaceChildren(...namespaces.map((name) => element("option", { value: name })));
  byId("namespace").readOnly = !anyNamespace;
  if (!readLink(location.hash)?.namespace) history.replaceState(null, "", link(defaultNamespace));
  follow();
}

// The address that `purlin ui` prints has the token behind the `#`. It is removed from the address.
function takeToken() {
  if (!location.hash.startsWith("#token=")) return;
  const given = new URLSearchParams(location.hash.slice(1));
  api.setToken(given.get("token"));
  history.replaceState(null, "", link(given.get("namespace") ?? ""));
}

// Shows the namespace and the object of the address.
function follow() {
  const { namespace, name } = readLink(location.hash) ?? { namespace: state.namespace, name: "" };
  if (namespace !== state.namespace || !polling) {
    state.namespace = namespace;
    byId("namespace").value = namespace;
    empty(namespace ? "Reading the objects." : "Choose a namespace.");
    polling?.abort();
    polling = new AbortController();
    poll(namespace, polling.signal);
  }
  document.title = name ? `${name} · ${namespace} · Purlin` : `${namespace} · Purlin`;
  select(name, name !== "");
}

// Shows nothing of a namespace but a sentence: no object of another one stays in sight.
function empty(sentence) {
  state.snapshot = null;
  render();
  byId("empty").textContent = sentence;
}

// Whether the server has answered that the namespace cannot be shown, rather than not answered.
const isRefusal = ({ status }) => status >= 400 && status < 500 && status !== 429;

async function poll(namespace, signal) {
  let tag = "";
  while (!signal.aborted) {
    try {
      const answer = await api.graph(namespace, tag, signal);
      if (signal.aborted) return;
      connection("", "live");
      if (answer) {
        tag = answer.tag;
        state.snapshot = answer.snapshot;
        render();
      }
      await pause(PAUSE);
    } catch (error) {
      if (signal.aborted) return;
      tag = "";
      if (error.status === 401) return signIn(error.message);
      connection("bad", error.message);
      if (!state.snapshot || isRefusal(error)) empty(error.message);
      await pause(RETRY);
    }
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function connection(kind, text) {
  byId("connection").className = kind;
  byId("connection").textContent = text;
}

function failed(error, retry) {
  if (error.status === 401) return signIn(error.message);
  connection("bad", error.message);
  setTimeout(retry, RETRY);
}

async function signIn(problem) {
  polling?.abort();
  polling = null;
  const dialog = byId("sign-in");
  byId("sign-in-error").textContent = api.token() ? problem : "";
  api.setToken("");
  // The text comes first: it must not move the field under the mouse of the user.
  byId("sign-in-how").textContent = (await api.signIn().catch(() => ({ how: "" }))).how;
  if (!dialog.open) dialog.showModal();
}

byId("sign-in-form").addEventListener("submit", () => {
  api.setToken(byId("token").value.trim());
  byId("token").value = "";
  start();
});
byId("sign-in").addEventListener("cancel", (event) => event.preventDefault());

// --- What is shown ------------------------------------------------------------------------------------------------------

let all = []; // the nodes of the graph

// Shows the snapshot.
function render() {
  all = nodes();
  graph.show(all, edges());
  byId("empty").hidden = all.length > 0;
  byId("empty").textContent = state.mode === "objects" ? "There are no objects here." : "No steps: nothing is running or due.";
  byId("notes").replaceChildren(...(state.snapshot?.notes ?? []).map((note) => element("p", {}, note)));
  renderPlans();
  renderFilter();
  graph.select(nodeOf(state.selected));
  refreshPanel();
}

// Shows what passes the filter.
function renderFilter() {
  const shown = found(all);
  const known = new Set(shown);
  graph.filter((node) => !known.has(node));
  list.show(shown, state.selected);
  const what = `${state.mode === "objects" ? "object" : "step"}${all.length === 1 ? "" : "s"}`;
  byId("count").textContent = shown.length === all.length ? `${all.length} ${what}` : `${shown.length} of ${all.length} ${what}`;
  renderStates();
}

// The node of an object in the current mode.
function nodeOf(object) {
  if (state.mode === "objects") return object;
  return all.find((node) => node.object === object)?.id ?? "";
}

let shownStates = "";
function renderStates() {
  const counts = {};
  for (const node of all) counts[node.state] = (counts[node.state] ?? 0) + 1;
  const text = JSON.stringify([counts, [...state.states]]);
  if (text === shownStates) return;
  shownStates = text;
  const focused = document.activeElement?.dataset?.state;
  const buttons = Object.keys(STATES).filter((key) => counts[key] || state.states.has(key)).map((key) => {
    const made = element("button", { type: "button", class: key, data: { state: key }, onclick: () => toggleState(key) });
    made.setAttribute("aria-pressed", String(state.states.has(key)));
    made.append(`${STATES[key].sign} ${STATES[key].word} ${counts[key] ?? 0}`);
    return made;
  });
  byId("states").replaceChildren(...buttons);
  if (focused) buttons.find((button) => button.dataset.state === focused)?.focus();
}

function toggleState(key) {
  if (!state.states.delete(key)) state.states.add(key);
  renderFilter();
}

function setMode(mode) {
  state.mode = mode;
  for (const name of ["objects", "steps"]) byId(`mode-${name}`).setAttribute("aria-pressed", String(name === mode));
  if (state.snapshot) render();
}

// --- Selection and details ----------------------------------------------------------------------------------------------

function select(name, open) {
  state.selected = name;
  graph.select(nodeOf(name));
  list.select(name);
  if (name) graph.reveal(nodeOf(name));
  if (open && name) openPanel(name);
  if (!name) closePanel();
  const wanted = link(state.namespace, name);
  if (location.hash !== wanted) history.replaceState(null, "", wanted);
  const node = all.find((one) => one.object === name);
  if (node) announce(`${node.title}, ${STATES[node.state]?.word ?? node.state}. ${node.message}`);
}

let shownObject = "";
function openPanel(name) {
  if (opened !== name) shownObject = "";
  opened = name;
  byId("panel").hidden = false;
  refreshPanel();
}

function closePanel() {
  opened = "";
  shownObject = "";
  byId("panel").hidden = true;
}

// Reads the details again if the object has changed.
async function refreshPanel() {
  if (!opened) return;
  if (!state.snapshot) {
    shownObject = "";
    return byId("panel").replaceChildren();
  }
  const name = opened;
  const object = state.snapshot.objects.find((one) => one.name === name);
  const panel = byId("panel");
  if (!object) {
    panel.replaceChildren(element("h2", {}, name), element("p", { class: "note" }, "This object does not exist here."));
    shownObject = "";
    return;
  }
  const near = state.snapshot.edges.filter((edge) => edge.from === name || edge.to === name);
  const text = JSON.stringify([object, near]);
  if (text === shownObject) return;
  const isSame = shownObject !== "" && panel.dataset.object === name;
  shownObject = text;
  panel.dataset.object = name;
  const on = { close: () => select("", false), go: (other) => select(other, true), copy: copyLink, plan: decideOn };
  if (!isSame) showObject(panel, object, null, near, on);
  try {
    const detail = await api.object(state.namespace, name);
    if (opened === name && shownObject === text) {
      const top = panel.scrollTop;
      showObject(panel, object, detail, near, on);
      panel.scrollTop = isSame ? top : 0;
    }
  } catch (error) {
    if (opened === name) panel.append(element("p", { role: "alert" }, `The details cannot be read: ${error.message}`));
  }
}

async function copyLink() {
  const url = new URL(link(state.namespace, state.selected), location.href).href;
  try {
    await navigator.clipboard.writeText(url);
    announce("The link is copied.");
    connection("", "link copied");
  } catch {
    window.prompt("The link to this object:", url);
  }
}

function hover(node, x, y) {
  const hint = byId("hint");
  hint.hidden = !node;
  if (!node) return;
  const waits = edges().filter((edge) => edge.from === node.id && edge.waits).slice(0, 6);
  hint.replaceChildren(
    element("div", {}, badge(node.state), ` ${node.id}`),
    element("div", { class: "why" }, node.message),
    ...waits.map((edge) => element("div", {}, `waits for ${edge.to}: ${edge.why}`)),
  );
  hint.style.left = `${Math.min(x + 14, byId("stage").clientWidth - 390)}px`;
  hint.style.top = `${y + 16}px`;
}

// --- Plans --------------------------------------------------------------------------------------------------------------

let shownPlans = "";
function renderPlans() {
  const { plans, mayDecide } = state.snapshot ?? { plans: [], mayDecide: false };
  const text = JSON.stringify([plans, mayDecide]);
  if (text === shownPlans) return;
  shownPlans = text;
  byId("plans").hidden = plans.length === 0;
  byId("plans").replaceChildren(...plans.map((plan) => planRow(plan, mayDecide)));
}

function planRow(plan, mayDecide) {
  const changes = plan.changes.slice(0, 6).map((change) => `${change.action.toLowerCase()} ${change.address}`);
  const more = plan.changes.length > 6 ? ` and ${plan.changes.length - 6} more` : "";
  const decided = plan.decidedBy ? `, decided by ${plan.decidedBy}` : "";
  const review = element("button", { type: "button", class: "review", data: { plan: plan.name }, onclick: () => decideOn(plan.name) }, "Show changes");
  const row = element(
    "div",
    { class: "plan", data: { plan: plan.name } },
    element("strong", {}, `Plan ${plan.name}`),
    element("span", { class: plan.state === "Waiting" ? "badge approval" : "badge" }, plan.state === "Waiting" ? "? waits for approval" : plan.state),
    element("span", { class: "text" }, `${changes.join(", ")}${more}${decided}`),
    review,
  );
  for (const difference of plan.differences) row.append(element("p", { class: "why" }, difference));
  if (plan.state === "Waiting" && mayDecide) {
    for (const [decision, word] of [["approve", "Approve"], ["reject", "Reject"]]) {
      row.append(element("button", { type: "button", class: decision, onclick: () => decideOn(plan.name, decision) }, word));
    }
  } else if (plan.state === "Waiting") {
    row.append(element("span", { class: "note" }, "You may not approve here (role purlin-approver)."));
  }
  return row;
}

// Shows the changes of a plan, and asks for a decision, if there is one to confirm. The decision is about the Plan that is
// shown: the server compares its UID.
async function decideOn(name, decision) {
  const dialog = byId("confirm");
  byId("confirm-title").textContent = decision ? `Do you want to ${decision} these changes?` : `Plan ${name}`;
  byId("confirm-text").replaceChildren("Reading the changes.");
  byId("confirm-error").textContent = "";
  const yes = byId("confirm-yes");
  yes.hidden = !decision;
  yes.disabled = true;
  yes.textContent = decision === "approve" ? "Approve" : "Reject";
  byId("confirm-no").textContent = decision ? "Cancel" : "Close";
  if (!dialog.open) dialog.showModal();
  const { namespace } = state;
  try {
    const plan = await api.plan(namespace, name);
    byId("confirm-text").replaceChildren(
      element("p", { class: "why" }, `${name}, digest ${plan.digest.slice(0, 12)}`),
      ...plan.problems.map((problem) => element("p", {}, problem)),
      ...plan.changes.map((change) => element("div", {}, change.held ? badge("approval") : "", diffText(change.text))),
    );
    yes.disabled = false;
    yes.onclick = async () => {
      yes.disabled = true;
      try {
        const { message } = await api.decide(namespace, name, plan.uid, decision);
        announce(message);
        dialog.close();
      } catch (error) {
        byId("confirm-error").textContent = error.message;
        yes.disabled = false;
      }
    };
    (decision ? yes : byId("confirm-no")).focus();
  } catch (error) {
    byId("confirm-text").replaceChildren();
    byId("confirm-error").textContent = error.message;
  }
}

byId("confirm-no").addEventListener("click", () => byId("confirm").close());

// --- Controls and keys --------------------------------------------------------------------------------------------------

byId("mode-objects").addEventListener("click", () => setMode("objects"));
byId("mode-steps").addEventListener("click", () => setMode("steps"));
byId("zoom-in").addEventListener("click", () => graph.zoom(1.3));
byId("zoom-out").addEventListener("click", () => graph.zoom(1 / 1.3));
byId("zoom-fit").addEventListener("click", () => graph.fit());
byId("help").addEventListener("click", () => byId("keys").showModal());
byId("theme").addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
let isNewSearch = false; // no arrow key was pressed since the last letter
byId("search").addEventListener("input", () => {
  state.text = byId("search").value;
  isNewSearch = state.text !== "";
  if (state.snapshot) renderFilter();
});

function clearSearch() {
  byId("search").value = "";
  byId("search").dispatchEvent(new Event("input"));
}
byId("namespace").addEventListener("change", () => {
  const name = byId("namespace").value.trim();
  if (name) location.hash = link(name);
});
addEventListener("hashchange", follow);

const theme = () => document.documentElement.dataset.theme;

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = name === "dark" ? "Light" : "Dark";
  graph.recolor();
}

const preference = matchMedia("(prefers-color-scheme: dark)");
setTheme(preference.matches ? "dark" : "light");
preference.addEventListener("change", () => setTheme(preference.matches ? "dark" : "light"));

// The neighbor of the selected object: what it waits for, or what waits for it.
function step(direction) {
  const [own, other] = direction === "left" ? ["from", "to"] : ["to", "from"];
  const current = nodeOf(state.selected);
  const next = edges().find((edge) => edge[own] === current)?.[other];
  const node = all.find((one) => one.id === next);
  if (node) select(node.object, !byId("panel").hidden);
}

// The first arrow key after a search selects its first result.
function move(by) {
  if (isNewSearch) list.forget();
  isNewSearch = false;
  list.move(by);
}

// Esc goes back by one step. In the search it clears the text, then leaves the field; elsewhere it closes the details, then
// clears the search. The list has the keyboard when its element is gone.
function back() {
  const focused = document.activeElement;
  const inSearch = focused === byId("search");
  const isOpen = !byId("panel").hidden;
  if (isOpen && !inSearch) select("", false);
  else if (state.text) clearSearch();
  else if (inSearch || focused === byId("namespace")) byId("list").focus();
  else select("", false);
  byId("namespace").value = state.namespace;
  if (document.activeElement === document.body || byId("panel").contains(focused)) byId("list").focus();
}

const KEYS = {
  "/": () => byId("search").focus(),
  "?": () => byId("keys").showModal(),
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  PageDown: () => move(10),
  PageUp: () => move(-10),
  ArrowLeft: () => step("left"),
  ArrowRight: () => step("right"),
  o: () => setMode("objects"),
  s: () => setMode("steps"),
  f: () => graph.fit(),
  "+": () => graph.zoom(1.3),
  "-": () => graph.zoom(1 / 1.3),
  t: () => byId("theme").click(),
  c: () => state.selected && copyLink(),
  p: () => state.snapshot?.plans[0] && decideOn(state.snapshot.plans[0].name),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const inSearch = event.target === byId("search");
  const isTyping = event.target instanceof HTMLInputElement;
  if (event.key === "Escape") {
    event.preventDefault();
    return back();
  }
  if (event.key === "Enter" && (inSearch || event.target === byId("list") || event.target === document.body || event.target === byId("graph"))) {
    const node = (inSearch && isNewSearch ? null : list.current()) ?? list.first();
    if (node) {
      select(node.object, true);
      byId("panel").focus();
    }
    return;
  }
  const isArrow = event.key === "ArrowDown" || event.key === "ArrowUp";
  if (isTyping && !(inSearch && isArrow)) return;
  // The panel scrolls with the arrow keys.
  if (isArrow && byId("panel").contains(event.target)) return;
  const act = KEYS[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});

// For the tests of the page.
window.purlin = { graph, state };

start();
