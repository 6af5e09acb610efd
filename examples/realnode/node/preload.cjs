// Node loads this file before the JAM node and in each of its threads. It keeps
// all sockets on the loopback interface, on the ports in REALNODE_TCP and
// REALNODE_UDP or on ports that the system chooses, and prints them. It replaces the threads that make tickets by idle ones: the
// package lacks a file of theirs, and a chain without tickets seals its blocks by
// the fallback keys.
const net = require("net");
const dgram = require("dgram");
const threads = require("worker_threads");

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (options, ...rest) {
  const isPort = typeof options === "number" || (options && options.port !== undefined);
  if (!isPort) return listen.call(this, options, ...rest);
  this.once("listening", () => console.log(`preload: tcp ${this.address().port}`));
  const ready = rest.find((x) => typeof x === "function");
  const port = Number(process.env.REALNODE_TCP ?? 0);
  return listen.call(this, { port, host: "127.0.0.1" }, ...(ready ? [ready] : []));
};

const bind = dgram.Socket.prototype.bind;
dgram.Socket.prototype.bind = function (_options, ...rest) {
  this.once("listening", () => console.log(`preload: udp ${this.address().port}`));
  const ready = rest.find((x) => typeof x === "function");
  const port = Number(process.env.REALNODE_UDP ?? 0);
  return bind.call(this, { port, address: "127.0.0.1" }, ...(ready ? [ready] : []));
};

const idle = `const { parentPort } = require("worker_threads");
parentPort.on("message", () => parentPort.postMessage(0));`;
const Worker = threads.Worker;
threads.Worker = class extends Worker {
  constructor(file, options) {
    if (String(file).includes("bootstrap-ticket-generator")) super(idle, { eval: true });
    else super(file, options);
  }
};
require("module").syncBuiltinESMExports();
