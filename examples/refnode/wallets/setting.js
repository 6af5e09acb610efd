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

// within fails when a promise takes longer than a node with slots of a tenth of a second has reason to.
export function within(promise, what, milliseconds = 20_000) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${milliseconds} ms`)), milliseconds);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// until asks again and again for something until it is true.
export async function until(what, ask, milliseconds = 20_000) {
  const end = Date.now() + milliseconds;
  while (!(await ask())) {
    if (Date.now() > end) throw new Error(`${what}: not within ${milliseconds} ms`);
    await new Promise((wake) => setTimeout(wake, 50));
  }
}

// step says what was checked, so that a failure's output ends with the last thing that worked.
export const step = (text) => console.log(`ok: ${text}`);
