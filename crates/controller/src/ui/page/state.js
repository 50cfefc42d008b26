// What the page shows: the last snapshot, the selection, the filter and the mode. The address has namespace and selection,
// so that it is a link to an object.

import { STATES } from "./dom.js";

export const state = {
  about: null,
  namespace: "",
  snapshot: null,
  mode: "objects", // or "steps"
  selected: "", // the name of an object
  text: "",
  states: new Set(), // empty: all
};

// A node of the graph: an object or a step, with the name of its object.
export function nodes() {
  const { snapshot, mode } = state;
  if (!snapshot) return [];
  if (mode === "objects") {
    const objects = snapshot.objects.map((object) => ({
      id: object.name,
      object: object.name,
      title: object.name,
      subtitle: object.count || object.label || object.typeName,
      type: object.typeName,
      state: object.state,
      message: object.message,
      action: object.action,
    }));
    return objects.sort(byName);
  }
  const steps = snapshot.steps.map((step) => ({
    id: step.id,
    object: step.object,
    title: step.object,
    subtitle: step.id.startsWith(step.object) ? step.id.slice(step.object.length).trim() : step.operation,
    type: "",
    state: step.state,
    message: step.message,
    action: step.operation,
  }));
  return steps.sort(byName);
}

const { compare } = new Intl.Collator("en", { numeric: true });
const byName = (a, b) => compare(a.id, b.id);

export function edges() {
  if (!state.snapshot) return [];
  return state.mode === "objects" ? state.snapshot.edges : state.snapshot.stepEdges;
}

// The nodes that pass the filter: every word of the search occurs in their texts, and their state is chosen. What a name
// says comes before what a message says, troubled objects before ready ones, and app-2 before app-10.
export function found(nodes) {
  const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
  const ranked = nodes.filter(isChosen).map((node) => ({ node, rank: rankOf(node, words) }));
  const trouble = ({ state }) => ORDER.indexOf(state);
  return ranked
    .filter(({ rank }) => rank >= 0)
    .sort((a, b) => a.rank - b.rank || trouble(a.node) - trouble(b.node))
    .map(({ node }) => node);
}

const ORDER = Object.keys(STATES);
const isChosen = ({ state: key }) => state.states.size === 0 || state.states.has(key);

// Where the words occur: 0 in the name, 1 also in type, state and action, 2 also in the message; -1 nowhere.
function rankOf(node, words) {
  let text = "";
  const parts = [node.id, ` ${node.subtitle} ${node.type} ${node.state} ${node.action}`, ` ${node.message}`];
  return parts.findIndex((part) => {
    text += part.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

// `#/namespace/name`, each part encoded: an address such as web["a/b"] has other characters.
export function link(namespace, name = "") {
  const parts = name ? [namespace, name] : [namespace];
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function readLink(hash) {
  if (!hash.startsWith("#/")) return null;
  try {
    const [namespace = "", name = ""] = hash.slice(2).split("/").map(decodeURIComponent);
    return { namespace, name };
  } catch {
    return null;
  }
}
