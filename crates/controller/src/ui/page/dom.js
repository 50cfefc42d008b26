// Small helpers for elements. Text is always set as text: nothing from the server becomes HTML.

export const byId = (id) => document.getElementById(id);

// An element with properties and children; strings become text.
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") made.className = value;
    else if (key === "data") Object.assign(made.dataset, value);
    else if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// The states, with their sign and word, those that need a user first. Color is never the only indication.
export const STATES = {
  failed: { sign: "✗", word: "failed" },
  approval: { sign: "?", word: "needs approval" },
  running: { sign: "▶", word: "running" },
  waiting: { sign: "…", word: "waiting" },
  suspended: { sign: "‖", word: "suspended" },
  ready: { sign: "✓", word: "ready" },
};

export function badge(state) {
  const { sign, word } = STATES[state] ?? { sign: "·", word: state };
  return element("span", { class: `badge ${state}` }, `${sign} ${word}`);
}

export function announce(text) {
  byId("announce").textContent = text;
}
