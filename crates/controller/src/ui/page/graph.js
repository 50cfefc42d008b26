// The graph: its view, the mouse, and the nodes under it. One worker computes the layout, another draws.

import { STATES } from "./dom.js";

const WIDTH = 190; // of a node, as in layout.js
const HEIGHT = 34;
const READABLE = 0.6; // the smallest scale for a selected node
const MARGIN = 30;
const MANY = 40; // so many nodes that the ready ones recede behind the others
const ORDER = Object.keys(STATES);

// on: { select(node), hover(node or null, x, y) }
export function createGraph(canvas, on) {
  const layout = new Worker("layout.js");
  const painter = new Worker("paint.js");
  const view = { x: 0, y: 0, scale: 1 };
  let nodes = [];
  let lines = []; // edges as indexes: { from, to, waits, depends }
  let index = new Map();
  let placed = null; // { xs, ys, width, height } of the last layout
  let pending = null; // what is shown when its layout is known
  let ids = "\n"; // the structure of the last layout: nothing needs none
  let generation = 0;
  let selected = "";
  let isHidden = () => false;
  let moved = false; // the user has moved the view
  const stats = { layouts: 0, draws: 0, drawn: 0, labels: [] }; // labels: the nodes whose names are outside of them

  const screen = canvas.transferControlToOffscreen();
  painter.postMessage({ canvas: screen, size: { width: WIDTH, height: HEIGHT } }, [screen]);
  painter.onmessage = ({ data }) => {
    stats.draws += 1;
    stats.drawn = data.drawn;
    stats.labels = data.labels.map((at) => nodes[at]?.id);
  };

  // Shows these nodes and edges. A new layout is computed only if the structure has changed.
  function show(newNodes, newEdges) {
    const newIndex = new Map(newNodes.map((node, at) => [node.id, at]));
    const known = newEdges.filter((edge) => newIndex.has(edge.from) && newIndex.has(edge.to));
    const line = ({ from, to, waits, depends }) => ({ from: newIndex.get(from), to: newIndex.get(to), waits, depends });
    const newLines = known.map(line);
    const pair = ({ from, to, depends }) => `${from}>${to}${depends ? "" : "!"}`;
    const newIds = `${newNodes.map((node) => node.id).join("\n")}\n${newLines.map(pair).join(" ")}`;
    const next = { nodes: newNodes, lines: newLines, index: newIndex };
    if (newIds === ids) {
      if (pending) Object.assign(pending, next);
      else use(next);
      return;
    }
    ids = newIds;
    generation += 1;
    pending = { ...next, generation };
    const flat = (isOrder) =>
      Int32Array.from(newLines.filter((one) => one.depends === isOrder).flatMap((one) => [one.from, one.to]));
    layout.postMessage({ generation, count: newNodes.length, edges: flat(true), others: flat(false) });
  }

  layout.onmessage = ({ data }) => {
    // An older layout is of other nodes.
    if (!pending || data.generation !== pending.generation) return;
    const next = pending;
    pending = null;
    placed = data;
    stats.layouts += 1;
    use(next);
    resize();
  };

  function use(next) {
    ({ nodes, lines, index } = next);
    if (!placed) return;
    const uses = new Int32Array(nodes.length);
    for (const { to } of lines) uses[to] += 1;
    const shown = nodes.map(({ title, subtitle, state, action }, at) => ({
      title: cut(title, 22),
      subtitle: cut(action && action !== subtitle ? `${subtitle} · ${action}` : subtitle, 27),
      state,
      sign: STATES[state]?.sign ?? "",
      // Whose name is shown first: of what is not ready, and of what many others use.
      rank: ORDER.indexOf(state) - uses[at] / (uses[at] + 1),
    }));
    const isTroubled = nodes.length >= MANY && nodes.some(({ state }) => state !== "ready");
    const bent = lines.map((line) => ({ ...line, bends: placed.bends.get(`${line.from}>${line.to}`) }));
    painter.postMessage({ scene: { nodes: shown, lines: bent, xs: placed.xs, ys: placed.ys, isTroubled } });
    filter(isHidden);
    draw();
  }

  function cut(text, most) {
    return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
  }

  function filter(hides) {
    isHidden = hides;
    painter.postMessage({ hidden: Uint8Array.from(nodes, (node) => (isHidden(node) ? 1 : 0)) });
  }

  function draw() {
    const { clientWidth: width, clientHeight: height } = canvas;
    const at = index.get(selected) ?? -1;
    painter.postMessage({ view: { ...view, width, height, ratio: devicePixelRatio || 1, selected: at } });
  }

  function recolor() {
    const style = getComputedStyle(document.documentElement);
    const names = ["front", "faint", "line", "card", "accent", "edge", "wait-edge", ...Object.keys(STATES)];
    painter.postMessage({ colors: Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) });
  }

  // Shows everything, unless the user has chosen what to see, and the selected node in any case.
  function resize() {
    if (!moved) fit();
    if (selected) reveal(selected);
    else draw();
  }

  function fit() {
    if (!placed) return;
    const { clientWidth, clientHeight } = canvas;
    const wide = (clientWidth - 2 * MARGIN) / Math.max(placed.width, WIDTH);
    const high = (clientHeight - 2 * MARGIN) / Math.max(placed.height, HEIGHT);
    view.scale = Math.min(1.2, Math.max(0.02, Math.min(wide, high)));
    view.x = (clientWidth - placed.width * view.scale) / 2;
    view.y = (clientHeight - placed.height * view.scale) / 2;
    moved = false;
    draw();
  }

  function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const scale = Math.min(3, Math.max(0.02, view.scale * factor));
    view.x = x - ((x - view.x) * scale) / view.scale;
    view.y = y - ((y - view.y) * scale) / view.scale;
    view.scale = scale;
    moved = true;
    draw();
  }

  // Moves the node into the middle if it is not visible, and makes it readable.
  function reveal(id) {
    const at = index.get(id);
    if (at !== undefined && placed) {
      const { clientWidth, clientHeight } = canvas;
      const [x, y] = [view.x + placed.xs[at] * view.scale, view.y + placed.ys[at] * view.scale];
      const isInside = x > 0 && y > 0 && x + WIDTH * view.scale < clientWidth && y + HEIGHT * view.scale < clientHeight;
      if (!isInside || view.scale < READABLE) {
        view.scale = Math.max(view.scale, READABLE);
        view.x = clientWidth / 2 - (placed.xs[at] + WIDTH / 2) * view.scale;
        view.y = clientHeight / 2 - (placed.ys[at] + HEIGHT / 2) * view.scale;
      }
    }
    draw();
  }

  function nodeAt(event) {
    if (!placed) return null;
    const box = canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - view.x) / view.scale;
    const y = (event.clientY - box.top - view.y) / view.scale;
    const { xs, ys } = placed;
    const isUnder = (_, at) => x >= xs[at] && x <= xs[at] + WIDTH && y >= ys[at] && y <= ys[at] + HEIGHT;
    return nodes.findLast(isUnder) ?? null;
  }

  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, far: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) {
      on.hover(nodeAt(event), event.offsetX, event.offsetY);
      return;
    }
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.far && Math.hypot(dx, dy) < 4) return;
    canvas.classList.add("dragging");
    Object.assign(drag, { x: event.clientX, y: event.clientY, far: true });
    view.x += dx;
    view.y += dy;
    moved = true;
    draw();
  });
  canvas.addEventListener("pointerup", (event) => {
    const clicked = drag && !drag.far;
    drag = null;
    canvas.classList.remove("dragging");
    const node = clicked ? nodeAt(event) : null;
    if (node) on.select(node);
  });
  canvas.addEventListener("pointerleave", () => on.hover(null, 0, 0));
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    },
    { passive: false },
  );
  new ResizeObserver(resize).observe(canvas);

  return {
    show,
    fit,
    zoom,
    reveal,
    filter,
    recolor,
    stats,
    select(id) {
      selected = id;
      draw();
    },
    // Where a node is in the window, or null.
    position(id) {
      const at = index.get(id);
      if (at === undefined || !placed) return null;
      const box = canvas.getBoundingClientRect();
      const x = box.left + view.x + (placed.xs[at] + WIDTH / 2) * view.scale;
      const y = box.top + view.y + (placed.ys[at] + HEIGHT / 2) * view.scale;
      return { x, y, column: placed.xs[at], row: placed.ys[at] };
    },
  };
}
