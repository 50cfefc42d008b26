// The details of an object: status, what it waits for and why, difference, events and history.

import { badge, element } from "./dom.js";

// A difference as `purlin plan` prints it, with the colors of its signs.
export function diffText(text) {
  const pre = element("pre", {});
  for (const line of text.replace(/\n+$/, "").split("\n")) {
    const sign = /^\s*(-\/\+|\+\/-|[-+~#])/.exec(line)?.[1];
    const kinds = { "+": "add", "-": "remove", "~": "change", "-/+": "change", "+/-": "change", "#": "comment" };
    pre.append(element("span", { class: kinds[sign] ?? "" }, line), "\n");
  }
  return pre;
}

function section(title, ...content) {
  return element("section", {}, element("h3", {}, title), ...content);
}

// Entries of a heading, a time, and texts below.
function entries(items) {
  const item = ({ head, when, texts }) =>
    element(
      "li",
      {},
      element("strong", {}, head),
      element("span", { class: "why" }, when ? `  ${time(when)}` : ""),
      ...texts.filter(Boolean).map((text) => element("div", {}, text)),
    );
  return element("ul", { class: "entries" }, ...items.map(item));
}

function listed({ items, note }, none, show) {
  if (note) return element("p", { class: "note" }, `Not shown: ${note}`);
  return items.length === 0 ? element("p", { class: "note" }, none) : show(items);
}

const time = (text) => text.replace("T", " ").replace("Z", "");

// Edges of an object in one direction, each with the reason.
function links(edges, other, go) {
  const item = (edge) =>
    element(
      "li",
      {},
      element("button", { type: "button", onclick: () => go(edge[other]) }, edge[other]),
      element("span", { class: "why" }, ` — ${edge.why}`),
    );
  return element("ul", { class: "links" }, ...edges.slice(0, 100).map(item));
}

// on: { close(), go(name), copy(), plan(name) }
export function showObject(panel, object, detail, edges, on) {
  const from = edges.filter((edge) => edge.from === object.name);
  const to = edges.filter((edge) => edge.to === object.name);
  const copy = element("button", { type: "button", id: "copy", title: "Copy a link to this object (c)", onclick: on.copy }, "Link");
  const close = element("button", { type: "button", id: "close", title: "Close (Esc)", ariaLabel: "Close", onclick: on.close }, "×");
  panel.replaceChildren(
    element("div", { class: "head" }, element("h2", { id: "panel-title" }, object.name), copy, close),
    element("p", {}, badge(object.state), ` ${object.typeName}${object.count ? `, ${object.count}` : ""}`),
    element("p", { id: "panel-message" }, [object.reason, object.message].filter(Boolean).join(": ")),
  );
  if (object.plan) {
    const open = element("button", { type: "button", onclick: () => on.plan(object.plan) }, object.plan);
    panel.append(element("p", { class: "links" }, "Held by the Plan ", open));
  }
  if (from.length > 0) panel.append(section(`Waits for or depends on (${from.length})`, links(from, "to", on.go)));
  if (to.length > 0) panel.append(section(`Others wait for it (${to.length})`, links(to, "from", on.go)));
  if (detail) panel.append(...details(detail));
}

function details(detail) {
  const facts = detail.facts.flatMap(([label, value]) => [element("dt", {}, label), element("dd", {}, value)]);
  const parts = [];
  if (facts.length > 0) parts.push(section("Status", element("dl", {}, ...facts)));
  if (detail.conditions.length > 0) {
    // Several conditions often have the same message.
    const isNew = (one, at) => one.message !== detail.conditions[at - 1]?.message;
    const row = (one, at) => ({
      head: `${one.type}=${one.status} ${one.reason}`,
      when: one.since,
      texts: [isNew(one, at) ? one.message : ""],
    });
    parts.push(section("Conditions", entries(detail.conditions.map(row))));
  }
  const diffs = detail.diffs.map((diff) => element("div", {}, diff.plan ? element("p", { class: "why" }, `In the Plan ${diff.plan}:`) : "", diffText(diff.text)));
  const none = element("p", { class: "note" }, "No planned change is known.");
  parts.push(section("Difference", ...(diffs.length > 0 ? diffs : [none])));
  const event = (one) => ({
    head: `${one.warning ? "⚠ " : ""}${one.reason}`,
    when: one.when,
    texts: [one.count > 1 ? `${one.message} (${one.count} times)` : one.message],
  });
  parts.push(section("Events", listed(detail.events, "No events.", (items) => entries(items.map(event)))));
  const change = (one) => ({
    head: `${one.address === detail.name ? "" : `${one.address}: `}${one.action}`,
    when: `${one.when}, ${one.duration}`,
    texts: [one.result, one.why && `because: ${one.why}`],
  });
  parts.push(section("History", listed(detail.history, "No changes are recorded.", (items) => entries(items.map(change)))));
  if (detail.attributes && Object.keys(detail.attributes).length > 0) {
    parts.push(section("Attributes", element("pre", {}, JSON.stringify(detail.attributes, null, 2))));
  }
  return parts;
}
