#!/usr/bin/env node
// The Solidity compiler as Foundry calls it, on npm's solc: it prints its version, or
// compiles a description in JSON.
const { readFileSync } = require("node:fs");
const solc = require("solc");

if (process.argv.includes("--version")) {
  console.log(`solc\nVersion: ${solc.version().replace("Emscripten.clang", "Linux.g++")}`);
} else {
  process.stdout.write(solc.compile(readFileSync(0, "utf8")));
}
