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
const PASSAGE = 14; // the room of an edge that passes a column
const MAX_PASSED = 600; // nodes of a part whose long edges have passages; there can be many times as many
const SWEEPS = 6; // over the layers; more do not help visibly

self.onmessage = (message) => {
  const { generation, count, edges, others } = message.data;
  self.postMessage({ generation, ...layout(count, edges, others) });
};

// count: the number of nodes. edges: pairs of indexes, flat; the first waits for the second. others: edges that may lead
// against the order, such as the destroy of an object after the update of its dependent.
// Returns xs, ys, width, height, and bends: by "from>to", the points at which a long edge passes the columns between.
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
  const bends = new Map();
  const parts = components(count, below, above).map((nodes) => place(nodes, layer, below, xs, ys, bends));
  const size = pack(parts, xs, ys, bends);
  return { xs, ys, bends, ...size };
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
function place(nodes, layer, below, xs, ys, bends) {
  nodes.sort((a, b) => a - b);
  const most = Math.max(12, Math.ceil(Math.sqrt(nodes.length) * 2.2)) * ROW;
  // With passages for long edges, unless they would need more room than the nodes.
  let part = build(nodes, layer, below, nodes.length <= MAX_PASSED);
  if (part.order.some((column) => heightOf(column) > most)) part = build(nodes, layer, below, false);
  sort(part.order);
  let column = 0;
  let height = 0;
  for (const items of part.order) {
    // A tall layer is broken into several columns, so that the part is not a thin strip.
    const pieces = Math.ceil(heightOf(items) / most);
    const rows = Math.ceil(items.length / pieces);
    for (let piece = 0; piece < pieces; piece++, column++) {
      let top = 0;
      for (const item of items.slice(piece * rows, (piece + 1) * rows)) {
        item.x = column * COLUMN;
        item.y = top;
        top += item.room;
      }
      height = Math.max(height, top);
    }
  }
  align(part.order.filter((items) => heightOf(items) <= most), height);
  for (const { node, x, y } of part.items.values()) [xs[node], ys[node]] = [x, y];
  const passed = part.long.map(({ from, to, passages }) => {
    const key = `${from}>${to}`;
    bends.set(key, passages.map(({ x, y, room }) => [x, y + room / 2]));
    return key;
  });
  return { nodes, passed, width: (column - 1) * COLUMN + WIDTH, height: height - ROW + HEIGHT };
}

// The nodes of a part by layers, with what is below and above each. passes: whether a long edge has an item in every layer
// that it passes.
function build(nodes, layer, below, passes) {
  const columns = new Map();
  const put = (at, item) => {
    if (!columns.has(at)) columns.set(at, []);
    columns.get(at).push(item);
    return item;
  };
  const connect = (from, to) => {
    from.below.push(to);
    to.above.push(from);
  };
  const items = new Map();
  for (const node of nodes) items.set(node, put(layer[node], { node, room: ROW, below: [], above: [], rank: 0 }));
  const long = [];
  for (const from of nodes) {
    for (const to of below[from]) {
      const [distance, own] = [layer[from] - layer[to], items.get(from)];
      if (!passes || distance < 2) {
        connect(own, items.get(to));
        continue;
      }
      const passages = [];
      for (let at = layer[from] - 1; at > layer[to]; at--) {
        passages.push(put(at, { node: -1, room: PASSAGE, below: [], above: [], rank: 0 }));
      }
      [own, ...passages].forEach((item, at) => connect(item, passages[at] ?? items.get(to)));
      long.push({ from, to, passages });
    }
  }
  const order = [...columns.keys()].sort((a, b) => a - b).map((key) => columns.get(key));
  return { order, items, long };
}

const heightOf = (items) => items.reduce((sum, item) => sum + item.room, 0);

// Orders each layer by the middle of the neighbors, again and again.
function sort(order) {
  const number = (column) => column.forEach((item, at) => (item.rank = at / column.length));
  order.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const side = sweep % 2 === 0 ? "below" : "above";
    for (const column of sweep % 2 === 0 ? order : [...order].reverse()) {
      for (const item of column) item.wanted = mean(item[side], "rank", item.rank);
      column.sort((a, b) => a.wanted - b.wanted || a.node - b.node);
      number(column);
    }
  }
}

// Moves the items of each layer towards the middle of their neighbors, in their order and without overlaps.
function align(order, height) {
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const side = sweep % 2 === 0 ? "below" : "above";
    for (const column of sweep % 2 === 0 ? order : [...order].reverse()) {
      let next = 0;
      let rest = heightOf(column);
      for (const item of column) {
        const centers = item[side].map((other) => ({ y: other.y + other.room / 2 }));
        const wanted = mean(centers, "y", item.y + item.room / 2) - item.room / 2;
        item.y = Math.max(next, Math.min(wanted, height - rest));
        next = item.y + item.room;
        rest -= item.room;
      }
    }
  }
}

function mean(items, field, otherwise) {
  if (items.length === 0) return otherwise;
  return items.reduce((sum, item) => sum + item[field], 0) / items.length;
}

// Packs the parts into rows, the tallest first, in about the shape of a screen.
function pack(parts, xs, ys, bends) {
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
    for (const key of part.passed) {
      for (const point of bends.get(key)) {
        point[0] += left;
        point[1] += top;
      }
    }
    left += part.width + GAP;
    row = Math.max(row, part.height);
    width = Math.max(width, left - GAP);
  }
  return { width, height: top + row };
}
