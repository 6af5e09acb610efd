// What the Go test hands over: where the node is, and keys with money.
const need = (name) => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: the Go test of this folder runs these scripts`);
  return value;
};

export const http = need("JAMQ_HTTP");
export const ws = need("JAMQ_WS");
export const keys = need("JAMQ_KEYS").split(",");
export const chainId = 4359n;

// until asks for something until it is true. There is no limit, because each limit is too short for
// some machine. The Go test ends a script that hangs, and shows its output, whose last line is then
// the state that did not come.
export async function until(what, ask) {
  console.log(`waiting: ${what}`);
  while (!(await ask())) await new Promise((wake) => setTimeout(wake, 50));
}

// arrival returns a promise, and logs what the script waits for until the promise is settled.
export function arrival(what, promise) {
  console.log(`waiting: ${what}`);
  return promise;
}

// step says what was checked, so that a failure's output ends with the last thing that worked.
export const step = (text) => console.log(`ok: ${text}`);
