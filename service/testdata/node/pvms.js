// Runs invocations on a PVM that others wrote.
//
//   node pvms.js anan-as|typeberry < cases > outcomes
//
// Each line of the input is an invocation as JSON: a program with its metadata, and what the
// chain answers. Each line of the output is its outcome. The Go side has the same fields in
// host_test.go.
import { createInterface } from "node:readline";

const none = 2n ** 64n - 1n;
const what = 2n ** 64n - 2n;
const full = 2n ** 64n - 5n;
const callGas = 10n;
const statuses = ["halt", "panic", "panic", "host", "out of gas"]; // a page fault is a panic
const host = 3;

console.log = console.error; // anan-as warns there

const bytes = (hex) => Uint8Array.from(Buffer.from(hex.slice(2), "hex"));
const hex = (raw) => "0x" + Buffer.from(raw).toString("hex");

// addressed tells whether a range is in the address space. The PVMs want addresses of 32 bits.
const addressed = (at, length) => at + length <= 2 ** 32;

// A machine has one shape for both PVMs: start, run until it stops, and access.
async function ananas() {
  const vm = await import("@fluffylabs/anan-as");
  return {
    start: (program, entry, gas, args) => vm.resetJAM([...program], entry, gas, [...args], true),
    run: () => {
      while (vm.nSteps(1_000_000));
      return vm.getStatus();
    },
    exit: () => vm.getExitArg(),
    registers: () => new DataView(vm.getRegisters().slice().buffer),
    setRegisters: (view) => vm.setRegisters([...new Uint8Array(view.buffer)]),
    read: (at, length) => (length === 0 ? new Uint8Array() : addressed(at, length) ? vm.getMemory(at, length) : null),
    write: (at, data) => data.length === 0 || (addressed(at, data.length) && vm.setMemory(at, data)),
    gas: () => BigInt(vm.getGasLeft()),
    setGas: (gas) => vm.setGasLeft(gas),
  };
}

async function typeberry() {
  const { Interpreter } = await import("@typeberry/lib/pvm-interpreter");
  const { tryAsGas } = await import("@typeberry/lib/pvm-interface");
  const vm = Interpreter.new();
  const access = (result) => !result.isError;
  return {
    start: (program, entry, gas, args) => vm.resetJam(program, args, entry, tryAsGas(gas)),
    run: () => {
      vm.runProgram();
      return vm.getStatus();
    },
    exit: () => vm.getExitParam(),
    registers: () => new DataView(vm.registers.getAllEncoded().slice().buffer),
    setRegisters: (view) => vm.registers.setAllEncoded(new Uint8Array(view.buffer)),
    read: (at, length) => {
      if (length === 0) return new Uint8Array();
      const out = addressed(at, length) && new Uint8Array(length);
      return out && access(vm.memory.read(at, out)) ? out : null;
    },
    write: (at, data) => data.length === 0 || (addressed(at, data.length) && access(vm.memory.store(at, data))),
    gas: () => BigInt(vm.gas.get()),
    setGas: (gas) => vm.gas.set(tryAsGas(gas)),
  };
}

// chain answers the calls of one invocation.
function chain(invocation) {
  const storage = new Map(Object.entries(invocation.storage ?? {}));
  const value = (kind, index) => {
    const part = invocation.package?.[kind];
    if (part) return bytes(part);
    if (kind === 13n && invocation.entry === 0 && index === BigInt(invocation.item ?? 0)) return bytes(invocation.payload ?? "0x");
    if (kind === 15n && invocation.entry !== 0) {
      const input = invocation.inputs?.[Number(index)];
      return input && bytes(input);
    }
  };
  let writes = invocation.writes;

  // answer writes a part of a value to the machine's memory.
  const answer = (vm, r, found, to, offset, length) => {
    const size = BigInt(found?.length ?? 0);
    const from = offset < size ? offset : size;
    const part = length < size - from ? length : size - from;
    if (found && !vm.write(Number(to), found.slice(Number(from), Number(from + part)))) return false;
    r[7] = found ? size : none;
    return true;
  };
  const call = (vm, number, r) => {
    switch (number) {
      case invocation.calls.fetch:
        return answer(vm, r, value(r[10], r[11]), r[7], r[8], r[9]);
      case invocation.calls.read: {
        const key = vm.read(Number(r[8]), Number(r[9]));
        if (key === null) return false;
        const found = r[7] === none ? storage.get(hex(key)) : undefined;
        return answer(vm, r, found && bytes(found), r[10], r[11], r[12]);
      }
      case invocation.calls.write: {
        const raw = vm.read(Number(r[7]), Number(r[8]));
        const data = vm.read(Number(r[9]), Number(r[10]));
        if (raw === null || data === null) return false;
        const key = hex(raw);
        const old = storage.get(key);
        if (data.length > 0 && writes === 0) {
          r[7] = full;
          return true;
        }
        if (data.length === 0) storage.delete(key);
        else {
          writes--;
          storage.set(key, hex(data));
        }
        r[7] = old === undefined ? none : BigInt(bytes(old).length);
        return true;
      }
      default:
        r[7] = what;
        return true;
    }
  };
  return { storage, call };
}

function run(vm, invocation) {
  const { storage, call } = chain(invocation);
  vm.start(bytes(invocation.program), invocation.entry, BigInt(invocation.gas), bytes(invocation.arguments));
  for (;;) {
    const status = vm.run();
    const view = vm.registers();
    const r = Array.from({ length: 13 }, (_, i) => view.getBigUint64(8 * i, true));
    if (status !== host) {
      if (statuses[status] !== "halt") return { status: statuses[status], left: 0 };
      const output = vm.read(Number(r[7]), Number(r[8])) ?? new Uint8Array();
      return { status: "halt", left: Number(vm.gas()), output: hex(output), ...(storage.size > 0 && { storage: Object.fromEntries(storage) }) };
    }
    if (vm.gas() < callGas) return { status: "out of gas" };
    vm.setGas(vm.gas() - callGas);
    if (!call(vm, vm.exit(), r)) return { status: "panic" };
    view.setBigUint64(8 * 7, r[7], true);
    vm.setRegisters(view);
  }
}

const vm = await (process.argv[2] === "anan-as" ? ananas() : typeberry());
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(run(vm, JSON.parse(line))) + "\n");
}
