// Runs blocks with whole work packages on typeberry's chain: authorization and refine as a
// guarantor does them, and the accumulation of the reports.
//
//   node chain.js < chains > outcomes
//
// Each line of the input is a chain as JSON: the entries of its genesis besides those of an empty
// state, and its blocks with their encoded packages. Each line of the output has, for each block,
// the yields and the entries of the state after it. Keys and values are hexadecimal.
import { createInterface } from "node:readline";

process.env.GP_VERSION = "0.7.2";
const lib = (path) => import(new URL(`node_modules/@typeberry/lib/packages/${path}`, import.meta.url));
const { tryAsCoreIndex, tryAsTimeSlot } = await lib("jam/block/index.js");
const { WorkPackage } = await lib("jam/block/work-package.js");
const { WorkReport } = await lib("jam/block/work-report.js");
const { Bytes, BytesBlob } = await lib("core/bytes/index.js");
const { Decoder } = await lib("core/codec/index.js");
const { PvmBackend, tinyChainSpec: spec } = await lib("jam/config/index.js");
const { Blake2b, WithHash } = await lib("core/hash/index.js");
const { InCore, RefineError } = await lib("jam/in-core/in-core.js");
const { InMemoryState } = await lib("jam/state/index.js");
const { SerializedState, StateEntries, serializeStateUpdate } = await lib("jam/state-merkleization/index.js");
const { Accumulate } = await lib("jam/transition/accumulate/index.js");
const { Level, Logger } = await lib("core/logger/index.js");

Logger.configureAll("", Level.ERROR);
const blake2b = await Blake2b.createHasher();
const blob = (hex) => BytesBlob.parseBlob(hex);

// refine makes the report of a package on a core, null if the authorizer does not let it pass.
async function refine(entries, encoded, core) {
  const state = SerializedState.fromStateEntries(spec, blake2b, entries);
  const data = Decoder.decodeObject(WorkPackage.Codec, encoded, spec);
  // The anchor's root is not known to the maker of the package.
  const states = { getState: () => state, getStateRoot: async () => data.context.stateRoot };
  const inCore = InCore.new(spec, states, PvmBackend.BuiltIn, blake2b);
  const none = data.items.map(() => []);
  const hash = blake2b.hashBytes(encoded);
  const refined = await inCore.refine(WithHash.new(hash, data), tryAsCoreIndex(core), none, none);
  if (refined.isError && refined.error === RefineError.AuthorizationError) return null;
  if (refined.isError) throw new Error(refined.details());
  // Refine looks up the segments of the package itself, so that the package would wait for itself.
  return WorkReport.create({ ...refined.ok.report, segmentRootLookup: [] });
}

async function run({ genesis, blocks }) {
  const empty = StateEntries.serializeInMemory(spec, blake2b, InMemoryState.partial(spec, {}));
  const own = Object.entries(genesis).map(([key, value]) => [blob(key).raw, blob(value)]);
  const entries = StateEntries.fromEntriesUnsafe([...empty, ...own.map(([key, value]) => [Bytes.fromBlob(key, 31), value])]);
  const outcomes = [];
  for (const { slot, packages } of blocks) {
    const reports = [];
    for (const [core, encoded] of packages.entries()) {
      const report = await refine(entries, blob(encoded), core);
      if (report) reports.push(report);
    }
    const state = SerializedState.fromStateEntries(spec, blake2b, entries);
    const accumulate = new Accumulate(spec, blake2b, state, { pvm: PvmBackend.BuiltIn, accumulateSequentially: true });
    const done = await accumulate.transition({ slot: tryAsTimeSlot(slot), reports, entropy: Bytes.zero(32) });
    if (done.isError) throw new Error(done.details());
    entries.applyUpdate(serializeStateUpdate(spec, blake2b, done.ok.stateUpdate));
    outcomes.push({
      yields: done.ok.accumulationOutputLog.array.map(({ output }) => output.toString()),
      entries: Object.fromEntries([...entries].map(([key, value]) => [key.toString(), value.toString()])),
    });
  }
  return outcomes;
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await run(JSON.parse(line))) + "\n");
}
