// Draws the graph in a Web Worker, on the canvas that the page has handed over: thousands of nodes do not delay the page.
// Only what is visible is drawn, and of several changes before a frame only the last.
"use strict";

const SMALLEST_TEXT = 0.45; // below this scale, texts could not be read

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
    self.postMessage({ drawn: paint() });
  });
};

// Returns how many nodes and edges were drawn.
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
  let drawn = lines.length;
  for (let at = 0; at < scene.nodes.length; at++) {
    const [left, top] = [scene.xs[at], scene.ys[at]];
    const isVisible = left < area.right && left + size.width > area.left && top < area.bottom && top + size.height > area.top;
    if (isVisible) {
      drawNode(at, at === selected);
      drawn += 1;
    }
  }
  return drawn;
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
  context.globalAlpha = hidden[at] ? 0.22 : 1;
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

function text(words, x, y, align, font, color) {
  context.fillStyle = color;
  context.font = `${font} system-ui, "Segoe UI", "DejaVu Sans", sans-serif`;
  context.textAlign = align;
  context.fillText(words, x, y);
}
