// Asking the server. A token, where one is needed, comes behind the # of the address and stays in this tab.

const KEY = "seqloom-token";

export function takeToken() {
  const found = location.hash.match(/^#token=([^&]+)$/);
  if (!found) return;
  sessionStorage.setItem(KEY, decodeURIComponent(found[1]));
  history.replaceState(null, "", "#/");
}

export const setToken = token => sessionStorage.setItem(KEY, token);

function headers(more = {}) {
  const token = sessionStorage.getItem(KEY);
  return token ? {...more, authorization: `Bearer ${token}`} : more;
}

export class Refused extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

async function answer(response) {
  const told = await response.json().catch(() => ({error: `the server answered ${response.status}`}));
  if (!response.ok) throw new Refused(response.status, told.error?.message ?? told.error);
  return told;
}

async function reach(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "the server does not answer: is it still running?");
  }
}

export async function get(path, signal) {
  return answer(await reach(path, {headers: headers(), signal}));
}

export async function post(path, body, signal) {
  const options = {method: "POST", headers: headers({"content-type": "application/json"}), body: JSON.stringify(body), signal};
  return answer(await reach(path, options));
}

// Text as it is written: calls `piece` with every chunk of /v1/completions.
export async function stream(body, piece, signal) {
  const options = {method: "POST", headers: headers({"content-type": "application/json"}),
    body: JSON.stringify({...body, stream: true}), signal};
  const response = await reach("/v1/completions", options);
  if (!response.ok) return answer(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", part = await reader.read(); !part.done; part = await reader.read()) {
    rest += part.value;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") return;
      const told = JSON.parse(data);
      if (told.error) throw new Refused(400, told.error.message);
      piece(told.choices[0]?.text ?? "");
    }
  }
}

const asked = new Set();  // what the shown page waits for

// Who goes to another page waits for nothing here any more, and the server need not answer it.
export const giveUp = () => asked.forEach(one => one.abort());

// Of several questions of one kind only the latest counts: the earlier ones are given up.
export function latest() {
  let current = null;
  return async (work, done, failed) => {
    current?.abort();
    const mine = current = new AbortController();
    asked.add(mine);
    try {
      const told = await work(mine.signal);
      if (current === mine) await done(told);
    } catch (error) {
      if (current === mine && error.name !== "AbortError") failed(error);
    } finally {
      asked.delete(mine);
    }
  };
}

export const runPath = name => `/runs/${encodeURIComponent(name)}`;
