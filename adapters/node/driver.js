// The Node.js side of package node: one process, one handler, one call at a time.
// Descriptor 3 carries what to do (a length and JSON) and what came of it (a line
// of JSON). Reading it blocks, so nothing of a function runs between two calls.
const fs = require('fs');
const [file, name] = process.argv.slice(1);
let id = '';

function say(message) {
  const data = Buffer.from(JSON.stringify(message) + '\n');
  for (let at = 0; at < data.length;) at += fs.writeSync(3, data, at);
}

function take(n) {
  const data = Buffer.alloc(n);
  for (let at = 0, got; at < n; at += got)
    if ((got = fs.readSync(3, data, at, n - at)) === 0) process.kill(process.pid, 'SIGKILL'); // the server is gone
  return data;
}

// What JavaScript writes travels with its call; what goes past it reaches the pipes.
for (const stream of ['stdout', 'stderr']) {
  process[stream].write = (data, encoding, done) => {
    const text = typeof data === 'string' ? data : Buffer.from(data).toString();
    for (let at = 0; at < text.length; at += 65536) say({ id, stream, text: text.slice(at, at + 65536) });
    (typeof encoding === 'function' ? encoding : done)?.();
    return true;
  };
}

function carried(key, value) {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`JSON cannot carry ${value}`);
  return value;
}

const failure = (e) => ({ type: e?.name ?? typeof e, message: String(e?.message ?? e), trace: String(e?.stack ?? e) });

async function answer(handler, { input, deadline }) {
  let event;
  try { event = JSON.parse(input); } catch (e) { return { payload: e.message }; }
  const context = { runUid: process.env.HEARTH_RUN_UID, invocationId: id, outputs: {}, remainingTimeMs: () => deadline - Date.now() };
  try {
    const output = JSON.stringify(await handler(event, context) ?? null, carried);
    return Buffer.byteLength(output) > 1 << 20 ? { large: true } : { output, outputs: context.outputs };
  } catch (e) { return { error: failure(e) }; }
}

(async () => {
  let handler;
  try {
    const loaded = await import(require('url').pathToFileURL(file));
    handler = loaded[name] ?? loaded.default?.[name];
  } catch (e) { say({ done: true, error: failure(e) }); }
  say(typeof handler === 'function' ? { done: true } : { done: true, invalid: `${name} is no function that ${file} exports` });
  for (;;) {
    const call = JSON.parse(take(take(4).readUInt32BE()));
    id = call.id;
    say({ done: true, ...await answer(handler, call) });
    id = '';
  }
})();
