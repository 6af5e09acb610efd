// Compiles a contract of this folder with npm's solc.
import { readFileSync } from "node:fs";
import solc from "solc";

export function compile(name) {
  const file = `${name}.sol`;
  const input = {
    language: "Solidity",
    sources: { [file]: { content: readFileSync(new URL(file, import.meta.url), "utf8") } },
    settings: {
      evmVersion: "prague",
      optimizer: { enabled: true, runs: 200 },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
    },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  const errors = (output.errors ?? []).filter((e) => e.severity === "error");
  if (errors.length > 0) throw new Error(errors.map((e) => e.formattedMessage).join("\n"));
  const { abi, evm } = output.contracts[file][name];
  return { abi, bytecode: `0x${evm.bytecode.object}` };
}
