// The list of objects beside the graph: it has everything that the graph has, for the keyboard and for screen readers. Only
// the visible rows are elements.

import { badge, element } from "./dom.js";

const ROW = 44; // the height of a row, as in view.css
const AROUND = 6; // rows above and below the visible ones

// on: { choose(node), open(node) }
export function createList(list, rows, on) {
  let nodes = [];
  let selected = -1;
  let queued = false;

  function render() {
    queued = false;
    rows.style.height = `${nodes.length * ROW}px`;
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - AROUND);
    const last = Math.min(nodes.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + AROUND);
    const shown = [];
    for (let at = first; at < last; at++) shown.push(row(nodes[at], at));
    rows.replaceChildren(...shown);
    const active = selected >= first && selected < last ? `row-${selected}` : "";
    list.setAttribute("aria-activedescendant", active);
  }

  function row(node, at) {
    const made = element(
      "div",
      { class: "row", id: `row-${at}`, role: "option", data: { id: node.id, object: node.object } },
      element("span", { class: "name" }, badge(node.state), ` ${node.title}`),
      element("span", { class: "more" }, [node.subtitle, node.action === node.subtitle ? "" : node.action, node.message].filter(Boolean).join(" · ")),
    );
    made.style.top = `${at * ROW}px`;
    made.setAttribute("aria-selected", String(at === selected));
    made.setAttribute("aria-posinset", String(at + 1));
    made.setAttribute("aria-setsize", String(nodes.length));
    made.addEventListener("click", () => on.open(node));
    return made;
  }

  function queue() {
    if (!queued) {
      queued = true;
      requestAnimationFrame(render);
    }
  }

  function scrollTo(at) {
    if (at < 0) return;
    if (at * ROW < list.scrollTop) list.scrollTop = at * ROW;
    const end = (at + 1) * ROW - list.clientHeight;
    if (end > list.scrollTop) list.scrollTop = end;
  }

  list.addEventListener("scroll", queue);
  new ResizeObserver(queue).observe(list);

  return {
    show(newNodes, id) {
      const before = nodes[selected]?.id;
      nodes = newNodes;
      const same = nodes.findIndex((node) => node.id === before && node.object === id);
      selected = same >= 0 ? same : nodes.findIndex((node) => node.object === id);
      queue();
    },
    // Selects the row of an object and shows it.
    select(id) {
      // An object can have several steps.
      if (nodes[selected]?.object !== id) selected = nodes.findIndex((node) => node.object === id);
      scrollTo(selected);
      queue();
    },
    // Moves the selection by some rows.
    move(by) {
      if (nodes.length === 0) return;
      const next = selected < 0 ? 0 : Math.min(nodes.length - 1, Math.max(0, selected + by));
      selected = next;
      scrollTo(selected);
      queue();
      on.choose(nodes[selected]);
    },
    // The next move begins at the first row.
    forget() {
      selected = -1;
    },
    current: () => nodes[selected] ?? null,
    first: () => nodes[0] ?? null,
  };
}
