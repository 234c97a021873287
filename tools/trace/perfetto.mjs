// Loads a trace into Perfetto's trace processor, as its page does, and answers queries.
//
//   node perfetto.mjs DIST TRACE < queries.json > answers.json
//
// DIST is a folder of Perfetto's page, with engine_bundle.js and trace_processor.wasm. The engine is a worker that is
// given a port; a port passes messages of its protocol (trace_processor.proto: a stream of TraceProcessorRpc).
// Queries are {"name": "select ..."}; answers {"name": [[cell, ...], ...]}. What the trace processor cannot read
// it counts in its table stats, which is a query as any other.
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

const [dist, trace] = process.argv.slice(2);
const queries = JSON.parse(fs.readFileSync(0, "utf8"));

// What a worker has and node has not.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
process.type = "renderer"; // node is none of the places that the engine was made for
globalThis.location = { href: "http://localhost/engine_bundle.js" }; // an address of which nothing is fetched
globalThis.XMLHttpRequest = class { // the engine asks for its WebAssembly at once
  open(_, url) {
    const bytes = fs.readFileSync(path.join(dist, path.basename(url)));
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  }
  send() {}
};
console.warn = () => {}; // the engine's own log
console.log = () => {};

// The wire format: what is needed of it.
const encoder = new TextEncoder(), decoder = new TextDecoder();

function varint(n) {
  const out = [];
  for (n = BigInt(n); n > 127n; n >>= 7n) out.push(Number(n & 127n) | 128);
  return [...out, Number(n)];
}

function bytesField(number, bytes) {
  return Buffer.concat([Buffer.from(varint(number * 8 + 2)), Buffer.from(varint(bytes.length)), bytes]);
}

function intField(number, n) {
  return Buffer.from([...varint(number * 8), ...varint(n)]);
}

// fields reads a message as [number, value] with bytes as Uint8Array and other values as BigInt.
function* fields(data) {
  let at = 0;
  const next = () => {
    let n = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const b = data[at++];
      n |= BigInt(b & 127) << shift;
      if (b < 128) return n;
    }
  };
  while (at < data.length) {
    const tag = Number(next()), kind = tag & 7;
    if (kind === 0) yield [tag >> 3, next()];
    else if (kind === 2) {
      const n = Number(next());
      yield [tag >> 3, data.subarray(at, at + n)];
      at += n;
    } else if (kind === 1) {
      yield [tag >> 3, data.subarray(at, at + 8)];
      at += 8;
    } else throw new Error(`a field of wire type ${kind}`);
  }
}

function* varints(data) {
  let n = 0n, shift = 0n;
  for (const b of data) {
    n |= BigInt(b & 127) << shift;
    shift += 7n;
    if (b < 128) {
      yield BigInt.asIntN(64, n);
      n = 0n;
      shift = 0n;
    }
  }
}

// Methods and fields of TraceProcessorRpc.
const append = 1, finalize = 2, query = 3;
const seqField = 1, requestField = 2, responseField = 3, fatalField = 5;
const appendData = 101, queryArgs = 103, appendResult = 201, queryResult = 203;

let seq = 0, port, waiting, pending = Buffer.alloc(0);

function call(method, args) {
  const rpc = Buffer.concat([intField(seqField, seq++), intField(requestField, method), args ?? Buffer.alloc(0)]);
  return new Promise((resolve, reject) => {
    waiting = { method, resolve, reject, rows: [], cells: [], columns: 0 };
    port.onmessage({ data: new Uint8Array(bytesField(1, rpc)) });
  });
}

// onReply takes messages that may come in pieces.
function onReply(data) {
  pending = Buffer.concat([pending, data]);
  for (;;) {
    let at = 1, n = 0, shift = 0;
    for (; at < pending.length; at++) {
      n += (pending[at] & 127) * 2 ** shift;
      shift += 7;
      if (pending[at] < 128) break;
    }
    if (at >= pending.length || at + 1 + n > pending.length) return;
    const rpc = pending.subarray(at + 1, at + 1 + n);
    pending = pending.subarray(at + 1 + n);
    onMessage(rpc);
  }
}

function onMessage(rpc) {
  const w = waiting;
  for (const [number, value] of fields(rpc)) {
    if (number === fatalField) w.reject(new Error(decoder.decode(value)));
    if (number === appendResult) {
      for (const [k, v] of fields(value)) if (k === 2) w.reject(new Error(decoder.decode(v)));
    }
    if (number === queryResult && onBatch(w, value)) w.resolve(w.rows);
    if (number === responseField && w.method !== query) w.resolve();
  }
}

// onBatch adds a QueryResult's cells to the rows; true with the last one.
function onBatch(w, result) {
  let last = false;
  for (const [number, value] of fields(result)) {
    if (number === 1) w.columns++;
    if (number === 2 && value.length > 0) w.reject(new Error(decoder.decode(value)));
    if (number !== 3) continue;
    let kinds = [], ints = [], floats = [], texts = [];
    for (const [k, v] of fields(value)) {
      if (k === 1) kinds = [...varints(v)].map(Number);
      if (k === 2) ints = [...varints(v)].map(Number);
      if (k === 3) floats = Array.from({ length: v.length / 8 }, (_, i) => Buffer.from(v).readDoubleLE(8 * i));
      if (k === 5) texts = decoder.decode(v).split("\0");
      if (k === 6) last = v === 1n;
    }
    for (const kind of kinds) {
      w.cells.push(kind === 2 ? ints.shift() : kind === 3 ? floats.shift() : kind === 4 ? texts.shift() : null);
      if (w.cells.length === w.columns) {
        w.rows.push(w.cells);
        w.cells = [];
      }
    }
  }
  return last;
}

vm.runInThisContext(fs.readFileSync(path.join(dist, "engine_bundle.js"), "utf8"), { filename: "engine_bundle.js" });
port = { postMessage: (data) => onReply(Buffer.from(data)) };
self.onmessage({ data: port });
await new Promise((resolve) => setTimeout(resolve, 50)); // until the engine is ready

const text = fs.readFileSync(trace);
for (let at = 0; at < text.length; at += 8 << 20) {
  await call(append, bytesField(appendData, text.subarray(at, at + (8 << 20))));
}
await call(finalize);
const answers = {};
for (const [name, sql] of Object.entries(queries)) {
  answers[name] = await call(query, bytesField(queryArgs, bytesField(1, Buffer.from(encoder.encode(sql)))));
}
fs.writeFileSync(1, JSON.stringify(answers));
process.exit(0);
