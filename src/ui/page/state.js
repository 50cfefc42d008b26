// What the page shows: the last snapshot, the selection, the filter and the mode. The address has namespace and selection,
// so that it is a link to an object.

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
    return snapshot.objects.map((object) => ({
      id: object.name,
      object: object.name,
      title: object.name,
      subtitle: object.count || object.typeName,
      state: object.state,
      message: object.message,
      action: object.action,
    }));
  }
  return snapshot.steps.map((step) => ({
    id: step.id,
    object: step.object,
    title: step.object,
    subtitle: step.id.startsWith(step.object) ? step.id.slice(step.object.length).trim() : step.operation,
    state: step.state,
    message: step.message,
    action: step.operation,
  }));
}

export function edges() {
  if (!state.snapshot) return [];
  return state.mode === "objects" ? state.snapshot.edges : state.snapshot.stepEdges;
}

// Whether a node passes the filter: every word occurs in its texts, and its state is chosen.
export function matches(node) {
  if (state.states.size > 0 && !state.states.has(node.state)) return false;
  const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const text = `${node.id} ${node.subtitle} ${node.state} ${node.action} ${node.message}`.toLowerCase();
  return words.every((word) => text.includes(word));
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
