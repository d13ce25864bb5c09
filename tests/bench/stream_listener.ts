/**
 * Clients that only listen: `deno run -A stream_listener.ts PORT` answers each line `STREAMS COUNT` on standard input by
 * asking for so many answers of so many tokens at once, and prints how late their tokens were. A process of its own, so
 * that whatever else a benchmark does meanwhile makes no token late.
 */
import { HttpConnection } from "./http_connection.ts";
import { chatBody } from "./parlor.ts";
import type { Answer } from "./upstream_chunks.ts";
import { quantile } from "./stats.ts";

/** A quick model's pace. */
export const TOKENS_PER_SECOND = 20;
const PERIOD_MS = 1000 / TOKENS_PER_SECOND;

/** How late the tokens of all streams were, in ms. */
export interface Lags {
  p99: number;
  worst: number;
  tokens: number;
}

async function listen(connections: HttpConnection[], count: number): Promise<Lags> {
  const lags = await Promise.all(connections.map((connection, n) => lagsOf(connection, `s${n}`, count)));
  const all = lags.flat();
  return { p99: quantile(all, 0.99), worst: quantile(all, 1), tokens: all.length };
}

/** Each token has its time after the first; the promptest of a stream is on time, whatever the others' way. */
async function lagsOf(connection: HttpConnection, tag: string, count: number): Promise<number[]> {
  const answer: Answer = { mode: "paced", perSecond: TOKENS_PER_SECOND, count, tag };
  const decoder = new TextDecoder();
  const offsets: number[] = [];
  let rest = "";
  const body = chatBody(crypto.randomUUID(), crypto.randomUUID(), answer);
  const { status } = await connection.request("POST", "/api/chat", body, (bytes) => {
    const now = performance.now();
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      for (const [, n] of line.matchAll(new RegExp(` ${tag}\\.(\\d+)(?=[" ])`, "g"))) {
        offsets.push(now - Number(n) * PERIOD_MS);
      }
    }
  });
  if (status !== 200 || offsets.length !== count) {
    throw new Error(`${offsets.length} of ${count} tokens came, status ${status}`);
  }
  const promptest = Math.min(...offsets);
  return offsets.map((offset) => offset - promptest);
}

if (import.meta.main) {
  const port = Number(Deno.args[0]);
  const connections: HttpConnection[] = [];
  console.log("ready");
  for await (const line of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const [streams, count] = line.trim().split(" ").map(Number) as [number, number];
    while (connections.length < streams) connections.push(await HttpConnection.open(port));
    console.log(JSON.stringify(await listen(connections.slice(0, streams), count)));
  }
}
