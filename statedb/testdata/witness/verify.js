// A verifier of jamq's witnesses that follows docs/witness.md, whose sections have the
// reasons. It is made for reading: unlike the one in Go, it does not fold chains of
// one-sided nodes, and has no limit on memory.
//
//   node verify.js < cases    one case as JSON per line, and one result per line
"use strict";
const { createHash } = require("node:crypto");

class Refused extends Error {
  constructor(rule) {
    super(rule);
    this.rule = rule;
  }
}

const check = (condition, rule) => {
  if (!condition) throw new Refused(rule);
};

const ZERO = Buffer.alloc(32);
const sha256 = (...parts) => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
};

// --- Encoding

const METADATA = [32, 20, 20, 52, 24]; // bytes after the first, by kind
const MIN_ENTRY = 21, MIN_CODE = 4;

class Reader {
  constructor(bytes) {
    this.rest = bytes;
  }
  take(n) {
    check(n <= this.rest.length, "length");
    const taken = this.rest.subarray(0, n);
    this.rest = this.rest.subarray(n);
    return taken;
  }
  count(size) {
    const n = this.take(4).readUInt32BE();
    check(n * size <= this.rest.length, "length");
    return n;
  }
}

function decode(bytes) {
  const body = bytes.subarray(0, Math.max(bytes.length - 8, 0));
  check(bytes.length >= 8 && sha256(body).subarray(0, 8).equals(bytes.subarray(-8)), "checksum");
  const reader = new Reader(body);
  check(reader.take(1)[0] === 1, "version");
  const entries = [], codes = [];
  for (let n = reader.count(MIN_ENTRY); n > 0; n--) entries.push(decodeEntry(reader));
  for (let n = reader.count(MIN_CODE); n > 0; n--) codes.push(reader.take(reader.count(1)));
  for (let i = 1; i < entries.length; i++) {
    check(Buffer.compare(entries[i - 1].key, entries[i].key) < 0, "order");
  }
  return { entries, codes, proof: decodeProof(reader.rest) };
}

function decodeEntry(reader) {
  const first = reader.take(1)[0];
  const kind = first & 0x0f, set = (first & 0x10) !== 0, deleted = (first & 0x20) !== 0;
  check((first & 0xc0) === 0 && kind < METADATA.length && !(set && deleted), "entry");
  return { kind, set, deleted, key: deriveKey(kind, reader.take(METADATA[kind])) };
}

function deriveKey(kind, data) {
  if (kind === 0) return data;
  let index = 0n, sub = kind - 1;
  if (kind === 3) {
    const slot = BigInt("0x" + data.subarray(20).toString("hex"));
    if (slot < 64n) {
      sub = 64 + Number(slot);
    } else {
      index = 256n ** 30n + slot / 256n;
      sub = Number(slot % 256n);
    }
  } else if (kind === 4) {
    const chunk = data.readUInt32BE(20) + 128;
    index = BigInt(Math.floor(chunk / 256));
    sub = chunk % 256;
  }
  const treeIndex = Buffer.from(index.toString(16).padStart(64, "0"), "hex");
  const hash = sha256(Buffer.alloc(12), data.subarray(0, 20), treeIndex);
  return Buffer.concat([hash.subarray(0, 31), Buffer.from([sub])]);
}

function decodeProof(bytes) {
  check(bytes.length >= 16, "size");
  const [bits, opened, hashes, values] = [0, 4, 8, 12].map((at) => bytes.readUInt32BE(at));
  const bitBytes = Math.ceil(bits / 8);
  check(bytes.length === 16 + bitBytes + 32 * (opened + hashes + values), "size");
  let at = 16 + bitBytes;
  const split = (n) => Array.from({ length: n }, () => bytes.subarray(at, (at += 32)));
  const proof = { bitCount: bits, bits: bytes.subarray(16, at) };
  check(bits % 8 === 0 || (proof.bits[bitBytes - 1] & (0xff >> (bits % 8))) === 0, "padding");
  proof.opened = split(opened);
  proof.hashes = split(hashes);
  proof.values = split(values);
  return proof;
}

// --- Proof. A node is null (empty), {hidden}, {stem, known, values, spans} or {left, right}.

const bitOf = (key, i) => (key[i >> 3] >> (7 - (i & 7))) & 1;
const stemOf = (key) => key.subarray(0, 31);
const isEmbedding = (bytes) => bytes.subarray(0, 12).equals(ZERO.subarray(0, 12));
const hasBit = (keys, depth, bit) => keys.filter((k) => bitOf(k.key, depth) === bit);

class Walk {
  constructor(proof) {
    this.proof = proof;
    this.at = { bits: 0, opened: 0, hashes: 0, values: 0 };
  }

  read(entries) {
    const root = entries.length === 0 ? this.sibling() : this.node([], entries)[0];
    const { proof, at } = this;
    check(at.bits === proof.bitCount, "streams");
    for (const name of ["opened", "hashes", "values"]) check(at[name] === proof[name].length, "streams");
    return root;
  }

  bit() {
    check(this.at.bits < this.proof.bitCount, "streams");
    return bitOf(this.proof.bits, this.at.bits++);
  }

  next(stream) {
    check(this.at[stream] < this.proof[stream].length, "streams");
    return this.proof[stream][this.at[stream]++];
  }

  sibling() {
    if (this.bit() === 0) return null;
    const hidden = this.next("hashes");
    check(!isEmbedding(hidden), "embedding");
    return { hidden };
  }

  // place has the bits that lead to the node.
  node(place, keys) {
    switch (this.bit() * 2 + this.bit()) {
      case 0:
        check(keys.length > 0, "unopened");
        return [null, !keys.some((k) => k.set)];
      case 1:
        check(place.length < 248, "depth");
        return this.inner(place, keys);
      case 2:
        return this.ownStem(keys);
      default:
        return this.openedStem(place, keys);
    }
  }

  inner(place, keys) {
    const depth = place.length;
    const sides = [null, null], below = [hasBit(keys, depth, 0), hasBit(keys, depth, 1)];
    const enter = (side) => {
      const [node, emptied] = this.node([...place, side], below[side]);
      sides[side] = node;
      return emptied;
    };
    let emptied = false;
    if (below[0].length > 0 && below[1].length > 0) {
      const left = enter(0), right = enter(1);
      emptied = left && right;
    } else if (keys.length > 0) {
      const used = below[0].length > 0 ? 0 : 1;
      const usedEmptied = enter(used);
      if (sides[used] !== null && !usedEmptied) sides[1 - used] = this.sibling();
      else if (this.bit() === 1) enter(1 - used);
      else emptied = usedEmptied;
    } else if (this.bit() === 0) {
      enter(1);
    } else {
      enter(0);
      sides[1] = this.sibling();
    }
    const [left, right] = sides;
    const one = left ?? right;
    check((left && right) || (one && !one.stem), "lone");
    return [{ left, right }, emptied];
  }

  ownStem(keys) {
    check(keys.length > 0, "unopened");
    const groups = [];
    for (const k of keys) {
      if (groups.length > 0 && stemOf(groups.at(-1)[0].key).equals(stemOf(k.key))) groups.at(-1).push(k);
      else groups.push([k]);
    }
    let chosen = 0;
    while (chosen + 1 < groups.length && this.bit() === 0) chosen++;
    const group = groups[chosen];
    const stem = this.newStem(stemOf(group[0].key), group);
    this.span(stem, 0, 256, -1);
    check(stem.values.size > 0, "kind");
    const deleted = group.filter((k) => k.deleted && stem.values.has(k.key[31])).length;
    return [stem, !keys.some((k) => k.set) && stem.spans.size === 0 && deleted === stem.values.size];
  }

  openedStem(place, keys) {
    const leaf = this.next("opened");
    check(place.every((bit, i) => bit === bitOf(leaf, i)), "opened");
    const group = keys.filter((k) => stemOf(k.key).equals(stemOf(leaf)));
    const stem = this.newStem(stemOf(leaf), group);
    check(!stem.known.has(leaf[31]), "opened");
    stem.known.add(leaf[31]);
    this.span(stem, 0, 256, leaf[31]);
    check(stem.values.size === 1, "kind");
    return [stem, false];
  }

  newStem(stem, group) {
    check(!isEmbedding(stem), "embedding");
    return { stem, known: new Set(group.map((k) => k.key[31])), values: new Map(), spans: new Map() };
  }

  // opened is the sub-index of an opened leaf, or -1.
  span(stem, first, length, opened) {
    let known = false;
    for (const sub of stem.known) known ||= sub >= first && sub < first + length;
    if (!known) {
      const beside = this.sibling();
      if (beside) {
        check(first > opened, "opened");
        stem.spans.set(first * 512 + length, beside.hidden);
      }
    } else if (length > 1) {
      this.span(stem, first, length / 2, opened);
      this.span(stem, first + length / 2, length / 2, opened);
    } else if (first === opened || this.bit() === 1) {
      stem.values.set(first, this.next("values"));
    }
  }
}

// --- Hashes

const pair = (left, right) => (left === ZERO && right === ZERO ? ZERO : sha256(left, right));

function hashOf(node) {
  if (node === null) return ZERO;
  if (node.hidden) return node.hidden;
  if (node.stem) return sha256(node.stem, Buffer.alloc(1), hashSpan(node, 0, 256));
  return sha256(hashOf(node.left), hashOf(node.right));
}

function hashSpan(stem, first, length) {
  const hidden = stem.spans.get(first * 512 + length);
  if (hidden) return hidden;
  if (length === 1) return stem.values.has(first) ? sha256(stem.values.get(first)) : ZERO;
  let some = false; // a value or a hash in the span
  for (const sub of stem.values.keys()) some ||= sub >= first && sub < first + length;
  for (const at of stem.spans.keys()) some ||= at >= first * 512 && at < (first + length) * 512;
  if (!some) return ZERO;
  return pair(hashSpan(stem, first, length / 2), hashSpan(stem, first + length / 2, length / 2));
}

// --- The root after. Writes are {key, value}, with value null for a deletion.

function after(node, depth, writes) {
  if (writes.length === 0) return node;
  check(!node?.hidden, "hidden");
  if (node === null || node.stem) return build(writeStems(node, writes), depth);
  const left = after(node.left, depth + 1, hasBit(writes, depth, 0));
  const right = after(node.right, depth + 1, hasBit(writes, depth, 1));
  if (left === null || right === null) {
    const other = left ?? right;
    if (other === null || other.stem) return other;
    check(!other.hidden, "hidden");
  }
  return { left, right };
}

function writeStems(node, writes) {
  const stems = new Map();
  const name = (stem) => stem.toString("hex");
  if (node) stems.set(name(node.stem), { ...node, values: new Map(node.values) });
  for (const { key, value } of writes) {
    const stem = stemOf(key);
    if (!stems.has(name(stem))) stems.set(name(stem), { stem, values: new Map(), spans: new Map() });
    const { values } = stems.get(name(stem));
    if (value) values.set(key[31], value);
    else values.delete(key[31]);
  }
  return [...stems.values()].filter((s) => s.values.size > 0 || s.spans.size > 0);
}

function build(stems, depth) {
  if (stems.length <= 1) return stems[0] ?? null;
  const side = (bit) => build(stems.filter((s) => bitOf(s.stem, depth) === bit), depth + 1);
  return { left: side(0), right: side(1) };
}

// --- Code

const ROTATIONS = [], ROUNDS = [];
{
  // The constants of Keccak-f[1600], from their definitions.
  let [x, y] = [1, 0];
  for (let t = 0; t < 24; t++) {
    ROTATIONS.push([x + 5 * y, BigInt((((t + 1) * (t + 2)) / 2) % 64)]);
    [x, y] = [y, (2 * x + 3 * y) % 5];
  }
  let lfsr = 1;
  for (let round = 0; round < 24; round++) {
    let constant = 0n;
    for (let j = 0; j < 7; j++) {
      if (lfsr & 1) constant |= 1n << BigInt((1 << j) - 1);
      lfsr = (lfsr << 1) ^ (lfsr & 0x80 ? 0x171 : 0);
    }
    ROUNDS.push(constant);
  }
}
const rotate = (lane, by) => BigInt.asUintN(64, (lane << by) | (lane >> (64n - by)));

function permute(a) {
  for (const constant of ROUNDS) {
    const columns = [0, 1, 2, 3, 4].map((x) => a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20]);
    for (let i = 0; i < 25; i++) a[i] ^= columns[(i + 4) % 5] ^ rotate(columns[(i + 1) % 5], 1n);
    const b = [...a];
    for (const [i, by] of ROTATIONS) {
      const x = i % 5, y = (i - x) / 5;
      b[y + 5 * ((2 * x + 3 * y) % 5)] = rotate(a[i], by);
    }
    for (let i = 0; i < 25; i++) {
      const row = i - (i % 5);
      a[i] = b[i] ^ (~b[row + ((i + 1) % 5)] & b[row + ((i + 2) % 5)] & 0xffffffffffffffffn);
    }
    a[0] ^= constant;
  }
}

function keccak256(data) {
  const rate = 136;
  const padded = Buffer.alloc(data.length + rate - (data.length % rate));
  data.copy(padded);
  padded[data.length] = 0x01;
  padded[padded.length - 1] |= 0x80;
  const state = Array(25).fill(0n);
  for (let at = 0; at < padded.length; at += rate) {
    for (let i = 0; i < rate / 8; i++) state[i] ^= padded.readBigUInt64LE(at + 8 * i);
    permute(state);
  }
  const sum = Buffer.alloc(32);
  for (let i = 0; i < 4; i++) sum.writeBigUInt64LE(state[i], 8 * i);
  return sum;
}

function checkCode(codes, entries, state) {
  const bound = new Set();
  entries.forEach((e, i) => e.kind === 2 && state[i] && bound.add(state[i].toString("hex")));
  let last = null;
  for (const code of codes) {
    check(code.length > 0, "code");
    const hash = keccak256(code);
    check(bound.has(hash.toString("hex")), "code");
    check(!last || Buffer.compare(last, hash) < 0, "code");
    last = hash;
  }
}

// --- Verification

// valueAt returns the value of a key of the witness before the writes, or null.
function valueAt(root, key) {
  let node = root;
  for (let depth = 0; node && !node.stem; depth++) node = bitOf(key, depth) ? node.right : node.left;
  return node && node.stem.equals(stemOf(key)) ? (node.values.get(key[31]) ?? null) : null;
}

function verify({ witness, preRoot, values }) {
  const { entries, codes, proof } = decode(witness);
  const root = new Walk(proof).read(entries);
  check(preRoot === null || hashOf(root).equals(preRoot), "root");
  const state = entries.map((e) => valueAt(root, e.key));
  checkCode(codes, entries, state);
  check(values.length === entries.filter((e) => e.set).length, "writes");
  let used = 0;
  const writes = entries
    .filter((e) => e.set || e.deleted)
    .map((e) => ({ key: e.key, value: e.set ? values[used++] : null }));
  return { postRoot: hashOf(after(root, 0, writes)), state };
}

const fromHex = (text) => Buffer.from(text.slice(2), "hex");
const toHex = (bytes) => bytes && "0x" + bytes.toString("hex");

function answer({ witness, preRoot, values }) {
  try {
    // Without a trusted root, as in tests, that of the proof is taken.
    const root = preRoot && fromHex(preRoot);
    const { postRoot, state } = verify({ witness: fromHex(witness), preRoot: root, values: values.map(fromHex) });
    return { postRoot: toHex(postRoot), state: state.map(toHex) };
  } catch (error) {
    if (error instanceof Refused) return { refused: error.rule };
    throw error;
  }
}

require("node:readline")
  .createInterface({ input: process.stdin })
  .on("line", (line) => console.log(JSON.stringify(answer(JSON.parse(line)))));
