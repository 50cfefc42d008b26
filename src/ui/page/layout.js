// The layout of the graph, in a Web Worker: the page stays responsive while thousands of nodes are placed.
//
// Layers from left to right (what others wait for is on the left), then an order in each layer with few crossings, then
// positions. Each connected part is laid out alone, and the parts are packed into rows.
"use strict";

const COLUMN = 250; // between the left sides of two columns
const ROW = 46; // between the tops of two nodes in a column
const WIDTH = 190; // of a node
const HEIGHT = 34;
const GAP = 50; // between parts
const SWEEPS = 6; // over the order of the layers; more do not help visibly

self.onmessage = (message) => {
  const { generation, count, edges, others } = message.data;
  self.postMessage({ generation, ...layout(count, edges, others) });
};

// count: the number of nodes. edges: pairs of indexes, flat; the first waits for the second. others: edges that may lead
// against the order, such as the destroy of an object after the update of its dependent.
// Returns xs, ys, width and height.
function layout(count, edges, others) {
  const below = Array.from({ length: count }, () => []);
  const above = Array.from({ length: count }, () => []);
  const add = (list) => {
    for (let at = 0; at < list.length; at += 2) {
      below[list[at]].push(list[at + 1]);
      above[list[at + 1]].push(list[at]);
    }
  };
  add(edges);
  const layer = layers(count, below);
  add(others);
  const xs = new Float32Array(count);
  const ys = new Float32Array(count);
  const parts = components(count, below, above).map((nodes) => place(nodes, layer, below, above, xs, ys));
  const size = pack(parts, xs, ys);
  return { xs, ys, ...size };
}

// The longest way to a node without dependencies. An edge that closes a cycle is ignored.
function layers(count, below) {
  const layer = new Int32Array(count);
  const state = new Uint8Array(count); // 0 new, 1 open, 2 done
  for (let root = 0; root < count; root++) {
    const stack = state[root] === 0 ? [[root, 0]] : [];
    while (stack.length > 0) {
      const top = stack[stack.length - 1];
      const node = top[0];
      state[node] = 1;
      if (top[1] < below[node].length) {
        const next = below[node][top[1]++];
        if (state[next] === 0) stack.push([next, 0]);
      } else {
        for (const other of below[node]) {
          if (state[other] === 2) layer[node] = Math.max(layer[node], layer[other] + 1);
        }
        state[node] = 2;
        stack.pop();
      }
    }
  }
  return layer;
}

function components(count, below, above) {
  const seen = new Uint8Array(count);
  const found = [];
  for (let root = 0; root < count; root++) {
    if (seen[root]) continue;
    seen[root] = 1;
    const nodes = [root];
    for (let at = 0; at < nodes.length; at++) {
      for (const next of [...below[nodes[at]], ...above[nodes[at]]]) {
        if (!seen[next]) {
          seen[next] = 1;
          nodes.push(next);
        }
      }
    }
    found.push(nodes);
  }
  return found;
}

// Places a connected part at the origin.
function place(nodes, layer, below, above, xs, ys) {
  const columns = new Map();
  for (const node of nodes.sort((a, b) => a - b)) {
    if (!columns.has(layer[node])) columns.set(layer[node], []);
    columns.get(layer[node]).push(node);
  }
  const order = [...columns.keys()].sort((a, b) => a - b).map((key) => columns.get(key));
  const rank = new Map();
  const number = () => order.forEach((column) => column.forEach((node, at) => rank.set(node, at / column.length)));
  number();
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const neighbors = sweep % 2 === 0 ? below : above;
    const sequence = sweep % 2 === 0 ? order : [...order].reverse();
    for (const column of sequence) {
      const center = new Map(column.map((node) => [node, middle(neighbors[node], rank, rank.get(node))]));
      column.sort((a, b) => center.get(a) - center.get(b) || a - b);
      column.forEach((node, at) => rank.set(node, at / column.length));
    }
  }
  // A tall layer is broken into several columns, so that the part is not a thin strip.
  const most = Math.max(12, Math.ceil(Math.sqrt(nodes.length) * 2.2));
  let column = 0;
  let height = 0;
  for (const all of order) {
    const rows = Math.ceil(all.length / Math.ceil(all.length / most));
    all.forEach((node, at) => {
      xs[node] = (column + Math.floor(at / rows)) * COLUMN;
      ys[node] = (at % rows) * ROW;
    });
    column += Math.ceil(all.length / rows);
    height = Math.max(height, rows * ROW);
  }
  align(order, below, above, ys, most, height);
  for (const node of nodes) height = Math.max(height, ys[node] + ROW);
  return { nodes, width: (column - 1) * COLUMN + WIDTH, height: height - ROW + HEIGHT };
}

// Moves the nodes of short layers towards the middle of their neighbors, in their order and without overlaps.
function align(order, below, above, ys, most, height) {
  for (let sweep = 0; sweep < 4; sweep++) {
    const sequence = sweep % 2 === 0 ? order : [...order].reverse();
    for (const column of sequence) {
      if (column.length > most) continue;
      const wanted = column.map((node) => {
        const others = sweep % 2 === 0 ? below[node] : above[node];
        if (others.length === 0) return ys[node];
        return others.reduce((sum, other) => sum + ys[other], 0) / others.length;
      });
      let next = 0;
      column.forEach((node, at) => {
        const rest = (column.length - at - 1) * ROW;
        ys[node] = Math.max(next, Math.min(wanted[at], height - ROW - rest));
        next = ys[node] + ROW;
      });
    }
  }
}

function middle(neighbors, rank, otherwise) {
  if (neighbors.length === 0) return otherwise;
  return neighbors.reduce((sum, other) => sum + (rank.get(other) ?? 0), 0) / neighbors.length;
}

// Packs the parts into rows, the tallest first, in about the shape of a screen.
function pack(parts, xs, ys) {
  const area = parts.reduce((sum, part) => sum + (part.width + GAP) * (part.height + GAP), 0);
  const widest = parts.reduce((most, part) => Math.max(most, part.width), 0);
  const limit = Math.max(widest, Math.sqrt(area * 1.7));
  parts.sort((a, b) => b.height - a.height || a.nodes[0] - b.nodes[0]);
  let [left, top, row, width] = [0, 0, 0, 0];
  for (const part of parts) {
    if (left > 0 && left + part.width > limit) [left, top, row] = [0, top + row + GAP, 0];
    for (const node of part.nodes) {
      xs[node] += left;
      ys[node] += top;
    }
    left += part.width + GAP;
    row = Math.max(row, part.height);
    width = Math.max(width, left - GAP);
  }
  return { width, height: top + row };
}
