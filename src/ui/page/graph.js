// Draws the graph on a canvas: only what is visible, in slices, so that no frame takes long with thousands of nodes. The
// positions come from a worker.

import { STATES } from "./dom.js";

const WIDTH = 190;
const HEIGHT = 34;
const SMALLEST_TEXT = 0.45; // below this scale, texts could not be read
const SLICE = 400; // nodes or edges that are drawn without a break
const MARGIN = 30;

// on: { select(node), hover(node or null, x, y) }
export function createGraph(canvas, on) {
  const context = canvas.getContext("2d");
  const worker = new Worker("layout.js");
  const view = { x: 0, y: 0, scale: 1 };
  let nodes = [];
  let lines = []; // edges as indexes: { from, to, waits, depends }
  let index = new Map();
  let placed = null; // { xs, ys, width, height } of the last layout
  let ids = ""; // the structure of the last layout
  let generation = 0;
  let selected = "";
  let dimmed = () => false;
  let colors = {};
  let drawing = 0;
  let moved = false; // the user has moved the view
  const stats = { layouts: 0, draws: 0, largestSlice: 0, drawn: 0 };

  function readColors() {
    const style = getComputedStyle(document.documentElement);
    const names = ["back", "front", "faint", "line", "card", "accent", "edge", "wait-edge", ...Object.keys(STATES)];
    colors = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  // Shows these nodes and edges. A new layout is computed only if the structure has changed.
  function show(newNodes, newEdges) {
    const newIndex = new Map(newNodes.map((node, at) => [node.id, at]));
    const known = newEdges.filter((edge) => newIndex.has(edge.from) && newIndex.has(edge.to));
    const line = ({ from, to, waits, depends }) => ({ from: newIndex.get(from), to: newIndex.get(to), waits, depends });
    const newLines = known.map(line);
    const newIds = JSON.stringify([newNodes.map((node) => node.id), newLines.map((line) => [line.from, line.to])]);
    const next = { nodes: newNodes, lines: newLines, index: newIndex };
    if (newIds === ids) {
      use(next);
      draw();
      return;
    }
    ids = newIds;
    generation += 1;
    pending = { ...next, generation };
    const flat = (isOrder) =>
      Int32Array.from(newLines.filter((one) => Boolean(one.depends) === isOrder).flatMap((one) => [one.from, one.to]));
    worker.postMessage({ generation, count: newNodes.length, edges: flat(true), others: flat(false) });
  }

  let pending = null;

  function use(next) {
    ({ nodes, lines, index } = next);
  }

  worker.onmessage = ({ data }) => {
    // An older layout is of other nodes.
    if (!pending || data.generation !== pending.generation) return;
    use(pending);
    pending = null;
    placed = data;
    stats.layouts += 1;
    if (moved && selected && index.has(selected)) draw();
    else fit();
    canvas.dispatchEvent(new CustomEvent("laid-out"));
  };

  function resize() {
    const ratio = devicePixelRatio || 1;
    const { clientWidth, clientHeight } = canvas;
    canvas.width = Math.round(clientWidth * ratio);
    canvas.height = Math.round(clientHeight * ratio);
    if (placed && !moved) fit();
    else if (selected) reveal(selected);
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
    if (at === undefined || !placed) return;
    const { clientWidth, clientHeight } = canvas;
    const scale = Math.max(view.scale, 0.6);
    const [x, y] = [view.x + placed.xs[at] * view.scale, view.y + placed.ys[at] * view.scale];
    const inside = x > 0 && y > 0 && x + WIDTH * view.scale < clientWidth && y + HEIGHT * view.scale < clientHeight;
    if (!inside || view.scale < SMALLEST_TEXT) {
      view.scale = scale;
      view.x = clientWidth / 2 - (placed.xs[at] + WIDTH / 2) * scale;
      view.y = clientHeight / 2 - (placed.ys[at] + HEIGHT / 2) * scale;
      moved = true;
    }
    draw();
  }

  // Draws on the next frame, in slices: a new drawing replaces one that has not ended.
  function draw() {
    drawing += 1;
    const mine = drawing;
    requestAnimationFrame(() => {
      if (mine === drawing) paint(mine);
    });
  }

  function paint(mine) {
    const ratio = devicePixelRatio || 1;
    stats.draws += 1;
    stats.drawn = 0;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    if (!placed) return;
    context.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, ratio * view.x, ratio * view.y);
    const left = -view.x / view.scale;
    const top = -view.y / view.scale;
    const area = { left, top, right: left + canvas.clientWidth / view.scale, bottom: top + canvas.clientHeight / view.scale };
    const chosen = index.get(selected);
    const visibleLines = lines.filter((line) => crosses(line, area));
    const visible = [];
    for (let at = 0; at < nodes.length && at < placed.xs.length; at++) {
      const [x, y] = [placed.xs[at], placed.ys[at]];
      if (x < area.right && x + WIDTH > area.left && y < area.bottom && y + HEIGHT > area.top) visible.push(at);
    }
    const near = (line) => line.from === chosen || line.to === chosen;
    visibleLines.sort((a, b) => near(a) - near(b) || a.waits - b.waits);
    const work = [
      ...visibleLines.map((line) => () => drawLine(line, chosen !== undefined && near(line), chosen !== undefined)),
      ...visible.map((at) => () => drawNode(at, at === chosen)),
    ];
    slice(work, 0, mine);
  }

  function slice(work, from, mine) {
    const end = Math.min(work.length, from + SLICE);
    for (let at = from; at < end; at++) work[at]();
    stats.largestSlice = Math.max(stats.largestSlice, end - from);
    stats.drawn += end - from;
    if (end < work.length) setTimeout(() => mine === drawing && slice(work, end, mine));
    else canvas.dispatchEvent(new CustomEvent("drawn"));
  }

  function crosses({ from, to }, area) {
    const [x1, x2, y1, y2] = [placed.xs[from], placed.xs[to], placed.ys[from], placed.ys[to]];
    if (x1 === undefined || x2 === undefined) return false;
    return Math.min(x1, x2) < area.right && Math.max(x1, x2) + WIDTH > area.left &&
      Math.min(y1, y2) < area.bottom && Math.max(y1, y2) + HEIGHT > area.top;
  }

  function drawLine({ from, to, waits }, isNear, fade) {
    // What others wait for is on the left. An edge against this order leads to the right.
    const back = placed.xs[from] < placed.xs[to] ? -1 : 1;
    const middle = HEIGHT / 2 + (back < 0 ? 6 : 0);
    const x1 = placed.xs[from] + (back < 0 ? WIDTH : 0);
    const x2 = placed.xs[to] + (back < 0 ? 0 : WIDTH);
    const [y1, y2] = [placed.ys[from] + middle, placed.ys[to] + middle];
    const bend = back * Math.max(30, Math.abs(x1 - x2) / 2);
    const isDimmed = dimmed(nodes[from]) || dimmed(nodes[to]);
    context.globalAlpha = isNear ? 1 : isDimmed ? 0.1 : fade ? 0.3 : 0.75;
    context.strokeStyle = isNear ? colors.accent : waits ? colors["wait-edge"] : colors.edge;
    context.fillStyle = context.strokeStyle;
    context.lineWidth = isNear ? 2.4 : 1.3;
    context.setLineDash(waits ? [] : [5, 4]);
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1 - bend, y1, x2 + bend, y2, x2 + back * 6, y2);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.moveTo(x2 + back, y2);
    context.lineTo(x2 + back * 9, y2 - 4);
    context.lineTo(x2 + back * 9, y2 + 4);
    context.fill();
    context.globalAlpha = 1;
  }

  function drawNode(at, isSelected) {
    const node = nodes[at];
    const [x, y] = [placed.xs[at], placed.ys[at]];
    const color = colors[node.state] ?? colors.faint;
    context.globalAlpha = dimmed(node) ? 0.22 : 1;
    context.fillStyle = colors.card;
    context.strokeStyle = isSelected ? colors.accent : colors.line;
    context.lineWidth = isSelected ? 3 : 1;
    context.beginPath();
    context.roundRect(x, y, WIDTH, HEIGHT, 6);
    context.fill();
    context.stroke();
    context.fillStyle = color;
    context.beginPath();
    context.roundRect(x, y, view.scale < SMALLEST_TEXT ? WIDTH : 22, HEIGHT, 6);
    context.fill();
    if (view.scale >= SMALLEST_TEXT) {
      context.fillStyle = colors.card;
      context.font = "bold 13px system-ui, sans-serif";
      context.textAlign = "center";
      context.fillText(STATES[node.state]?.sign ?? "", x + 11, y + 22);
      context.textAlign = "left";
      context.fillStyle = colors.front;
      context.font = "600 12.5px system-ui, sans-serif";
      context.fillText(cut(node.title, 22), x + 29, y + 15);
      context.fillStyle = colors.faint;
      context.font = "11px system-ui, sans-serif";
      const action = node.action && node.action !== node.subtitle ? ` · ${node.action}` : "";
      context.fillText(cut(`${node.subtitle}${action}`, 27), x + 29, y + 28);
    }
    context.globalAlpha = 1;
  }

  function cut(text, most) {
    return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
  }

  function nodeAt(event) {
    if (!placed) return null;
    const box = canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - view.x) / view.scale;
    const y = (event.clientY - box.top - view.y) / view.scale;
    for (let at = nodes.length - 1; at >= 0; at--) {
      const [left, top] = [placed.xs[at], placed.ys[at]];
      if (x >= left && x <= left + WIDTH && y >= top && y <= top + HEIGHT) return nodes[at];
    }
    return null;
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
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
  }, { passive: false });
  new ResizeObserver(resize).observe(canvas);
  readColors();

  return {
    show,
    fit,
    zoom,
    reveal,
    draw,
    stats,
    select(id) {
      selected = id;
      draw();
    },
    filter(isHidden) {
      dimmed = isHidden;
      draw();
    },
    recolor() {
      readColors();
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
