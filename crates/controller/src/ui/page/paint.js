// Draws the graph in a Web Worker, on the canvas that the page has handed over: thousands of nodes do not delay the page.
// Only what is visible is drawn, and of several changes before a frame only the last.
"use strict";

const SMALLEST_TEXT = 0.45; // below this scale, the texts of the nodes could not be read
const LABEL = 18; // the height of a name outside of its node
const MAX_LABELS = 300;
const QUIET = 0.45; // how strong a ready object is drawn beside objects that are not

let canvas = null;
let context = null;
let scheduled = false;
let size = { width: 0, height: 0 }; // of a node
let colors = {};
let scene = { nodes: [], lines: [], xs: [], ys: [] };
let hidden = new Uint8Array(0); // the nodes that do not pass the filter
let view = { x: 0, y: 0, scale: 1, width: 0, height: 0, ratio: 1, selected: -1 };

self.onmessage = ({ data }) => {
  if (data.canvas) {
    canvas = data.canvas;
    context = canvas.getContext("2d");
    size = data.size;
  }
  if (data.colors) colors = data.colors;
  if (data.scene) scene = data.scene;
  if (data.hidden) hidden = data.hidden;
  if (data.view) view = data.view;
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    self.postMessage(paint());
  });
};

// Returns how many nodes and edges were drawn, and the nodes whose names are outside of them.
function paint() {
  const { x, y, scale, width, height, ratio, selected } = view;
  const pixels = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * x, ratio * y);
  const area = { left: -x / scale, top: -y / scale, right: (width - x) / scale, bottom: (height - y) / scale };
  const near = (line) => line.from === selected || line.to === selected;
  const lines = scene.lines.filter((line) => crosses(line, area));
  lines.sort((a, b) => near(a) - near(b) || a.waits - b.waits);
  for (const line of lines) drawLine(line, selected >= 0 && near(line), selected >= 0);
  const visible = [];
  for (let at = 0; at < scene.nodes.length; at++) {
    const [left, top] = [scene.xs[at], scene.ys[at]];
    const isVisible = left < area.right && left + size.width > area.left && top < area.bottom && top + size.height > area.top;
    if (isVisible) visible.push(at);
  }
  for (const at of visible) drawNode(at, at === selected);
  const labels = scale < SMALLEST_TEXT ? drawLabels(visible) : [];
  return { drawn: lines.length + visible.length, labels };
}

// As on a map: names of a readable size, the important ones first, as many as have room. Closer, there are more.
function drawLabels(visible) {
  const { x, y, scale, ratio, selected } = view;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const rank = (at) => (at === selected ? -1 : hidden[at] ? 1000 : scene.nodes[at].rank);
  const taken = [];
  const labels = [];
  for (const at of [...visible].sort((a, b) => rank(a) - rank(b) || a - b)) {
    if (labels.length === MAX_LABELS || hidden[at]) break;
    const { title, state } = scene.nodes[at];
    context.font = font("600 11.5px");
    const width = context.measureText(title).width + 10;
    const left = x + (scene.xs[at] + size.width / 2) * scale - width / 2;
    const top = y + (scene.ys[at] + size.height / 2) * scale - LABEL / 2;
    const overlaps = (other) =>
      left < other.left + other.width + 4 && other.left < left + width + 4 && Math.abs(top - other.top) < LABEL + 2;
    if (taken.some(overlaps)) continue;
    taken.push({ left, top, width });
    labels.push(at);
    context.globalAlpha = 0.92;
    context.fillStyle = colors.card;
    context.strokeStyle = at === selected ? colors.accent : colors[state] ?? colors.line;
    context.lineWidth = at === selected ? 2 : 1;
    context.beginPath();
    context.roundRect(left, top, width, LABEL, 4);
    context.fill();
    context.stroke();
    context.globalAlpha = 1;
    text(title, left + width / 2, top + LABEL - 5, "center", "600 11.5px", colors.front);
  }
  return labels;
}

function crosses({ from, to }, area) {
  const { xs, ys } = scene;
  return (
    Math.min(xs[from], xs[to]) < area.right &&
    Math.max(xs[from], xs[to]) + size.width > area.left &&
    Math.min(ys[from], ys[to]) < area.bottom &&
    Math.max(ys[from], ys[to]) + size.height > area.top
  );
}

function drawLine({ from, to, waits, bends = [] }, isNear, fade) {
  const { xs, ys } = scene;
  // What others wait for is on the left. An edge against this order leads to the right.
  const back = xs[from] < xs[to] ? -1 : 1;
  const middle = size.height / 2 + (back < 0 ? 6 : 0);
  const x1 = xs[from] + (back < 0 ? size.width : 0);
  const x2 = xs[to] + (back < 0 ? 0 : size.width);
  const [y1, y2] = [ys[from] + middle, ys[to] + middle];
  const isHidden = hidden[from] || hidden[to];
  context.globalAlpha = isNear ? 1 : isHidden ? 0.1 : fade ? 0.3 : 0.75;
  context.strokeStyle = isNear ? colors.accent : waits ? colors["wait-edge"] : colors.edge;
  context.fillStyle = context.strokeStyle;
  context.lineWidth = isNear ? 2.4 : 1.3;
  context.setLineDash(waits ? [] : [5, 4]);
  context.beginPath();
  context.moveTo(x1, y1);
  let [x, y] = [x1, y1];
  const curveTo = (toX, toY) => {
    const bend = back * Math.max(30, Math.abs(x - toX) / 2);
    context.bezierCurveTo(x - bend, y, toX + bend, toY, toX, toY);
    [x, y] = [toX, toY];
  };
  for (const [left, top] of bends) {
    curveTo(left + size.width, top);
    context.lineTo(left, top);
    x = left;
  }
  curveTo(x2 + back * 6, y2);
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
  const { title, subtitle, state, sign } = scene.nodes[at];
  const [x, y] = [scene.xs[at], scene.ys[at]];
  const isReadable = view.scale >= SMALLEST_TEXT;
  context.globalAlpha = hidden[at] ? 0.22 : state === "ready" && scene.isTroubled && !isSelected ? QUIET : 1;
  context.fillStyle = colors.card;
  context.strokeStyle = isSelected ? colors.accent : colors.line;
  context.lineWidth = isSelected ? 3 : 1;
  box(x, y, size.width);
  context.stroke();
  context.fillStyle = colors[state] ?? colors.faint;
  box(x, y, isReadable ? 22 : size.width);
  if (isReadable) {
    text(sign, x + 11, y + 22, "center", "bold 13px", colors.card);
    text(title, x + 29, y + 15, "left", "600 12.5px", colors.front);
    text(subtitle, x + 29, y + 28, "left", "11px", colors.faint);
  }
  context.globalAlpha = 1;
}

function box(x, y, width) {
  context.beginPath();
  context.roundRect(x, y, width, size.height, 6);
  context.fill();
}

const font = (size) => `${size} system-ui, "Segoe UI", "DejaVu Sans", sans-serif`;

function text(words, x, y, align, size, color) {
  context.fillStyle = color;
  context.font = font(size);
  context.textAlign = align;
  context.fillText(words, x, y);
}
