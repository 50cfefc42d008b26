// Requests to the server. The token is sent in a header, and kept only for this tab.

const KEY = "purlin-token";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function token() {
  return sessionStorage.getItem(KEY) ?? "";
}

export function setToken(value) {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
}

async function request(path, parameters = {}, options = {}) {
  const query = new URLSearchParams(parameters).toString();
  const headers = { Authorization: `Bearer ${token()}`, ...options.headers };
  let response;
  try {
    response = await fetch(query ? `${path}?${query}` : path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "the server does not answer");
  }
  if (response.ok || response.status === 304) return response;
  const body = await response.json().catch(() => ({}));
  throw new Refused(response.status, body.error ?? `the server answers with ${response.status}`);
}

const json = async (...call) => (await request(...call)).json();

export const signIn = () => json("api/sign-in");
export const about = () => json("api/about");
export const object = (namespace, name) => json("api/object", { namespace, name });
export const plan = (namespace, name) => json("api/plan", { namespace, name });

export function decide(namespace, plan, uid, decision) {
  const body = JSON.stringify({ namespace, plan, uid, decision });
  return json("api/decision", {}, { method: "POST", body, headers: { "Content-Type": "application/json" } });
}

// The graph of a namespace. With the tag of the last answer, the server waits for a change; null if there was none.
export async function graph(namespace, tag, signal) {
  const headers = tag ? { "If-None-Match": tag } : {};
  const response = await request("api/graph", { namespace }, { headers, signal });
  if (response.status === 304) return null;
  return { tag: response.headers.get("ETag"), snapshot: await response.json() };
}
