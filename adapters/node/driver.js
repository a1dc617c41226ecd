// The Node.js side of package node: one process, one handler, one call at a time,
// over descriptor 3 in the frames and messages of pyrunner. Reading it blocks, so
// nothing of a function runs between two calls.
const fs = require('fs');
const [file, name] = process.argv.slice(1);
const { parse, stringify } = JSON; // a handler may change its own
const kinds = { ready: 49, answer: 50, failure: 51, entry: 52, refused: 18 };

function say(kind, ...fields) {
  const size = (n, bytes) => { const b = Buffer.alloc(bytes); b.writeUInt32BE(n, bytes - 4); return b; };
  const body = Buffer.concat([Buffer.from([kinds[kind]]), ...fields.flatMap((f) => { const b = Buffer.from(String(f)); return [size(b.length, 4), b]; })]);
  const frame = Buffer.concat([size(body.length, 8), body, size(0, 8)]);
  for (let at = 0; at < frame.length;) at += fs.writeSync(3, frame, at);
}

function take(n) {
  const data = Buffer.alloc(n);
  for (let at = 0, got; at < n; at += got)
    if ((got = fs.readSync(3, data, at, n - at)) === 0) process.kill(process.pid, 'SIGKILL'); // the server is gone
  return data;
}

function hear() {
  const body = Buffer.concat([...function* () { for (let n; (n = take(8).readUInt32BE(4)) > 0;) yield take(n); }()]);
  const fields = [];
  for (let at = 1; at < body.length; at += 4 + fields.at(-1).length) fields.push(body.subarray(at + 4, at + 4 + body.readUInt32BE(at)));
  return fields;
}

// What JavaScript writes travels with its call; what goes past it reaches the pipes.
for (const stream of ['stdout', 'stderr'])
  process[stream].write = (data, encoding, done) => {
    const text = typeof data === 'string' ? data : Buffer.from(data).toString();
    for (let at = 0; at < text.length; at += 65536) say('entry', stream, text.slice(at, at + 65536));
    (typeof encoding === 'function' ? encoding : done)?.();
    return true;
  };

const fail = (kind, code, e) => say(kind, code, e?.name ?? typeof e, e?.message ?? e, e?.stack ?? e);

function carried(key, value) {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`JSON cannot carry ${value}`);
  return value;
}

function sweep() { // children are reaped between calls only: no pid is another's
  for (const pid of fs.readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').split(' ').filter(Boolean))
    for (const target of [-pid, +pid]) try { process.kill(target, 'SIGKILL'); } catch { /* it leads no group */ }
}

async function call(handler, [, id, left, input]) {
  const deadline = Date.now() + Number(left.readBigInt64BE());
  const context = { runUid: process.env.HEARTH_RUN_UID, invocationId: String(id), outputs: {}, remainingTimeMs: () => deadline - Date.now() };
  let event, output;
  try { event = parse(new TextDecoder('utf-8', { fatal: true }).decode(input)); } catch (e) { return fail('failure', 'PAYLOAD_INVALID', e); }
  try { output = stringify(await handler(event, context) ?? null, carried); } catch (e) { return fail('failure', 'HANDLER_ERROR', e); } finally { sweep(); }
  if (Buffer.byteLength(output) > 1 << 20) return fail('failure', 'RESPONSE_TOO_LARGE', 'the answer has more than 1 MiB');
  say('answer', output, ...Object.entries(context.outputs).flat());
}

(async () => {
  let handler;
  try {
    const loaded = await import(require('url').pathToFileURL(file));
    handler = loaded[name] ?? loaded.default?.[name];
  } catch (e) { fail('refused', 'LOAD_FAILED', e); }
  if (typeof handler === 'function') say('ready'); else fail('refused', 'HANDLER_INVALID', `${name} is no function that ${file} exports`);
  for (;;) await call(handler, hear());
})();
