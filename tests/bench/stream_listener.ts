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

/** How late the tokens of all streams were, in ms: how much longer each was on its way than the promptest of its stream. */
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

/**
 * Each token says when the model server sent it, so that lateness of that server's own timers is none of the relay's. The
 * clocks differ by a time that is the same for all tokens and falls out with the promptest one's.
 */
async function lagsOf(connection: HttpConnection, tag: string, count: number): Promise<number[]> {
  const answer: Answer = { mode: "stamped", perSecond: TOKENS_PER_SECOND, count, tag };
  const decoder = new TextDecoder();
  const stamp = new RegExp(` ${tag}\\.\\d+@([\\d.]+)`, "g");
  const ways: number[] = [];
  let rest = "";
  const body = chatBody(crypto.randomUUID(), crypto.randomUUID(), answer);
  const { status } = await connection.request("POST", "/api/chat", body, (bytes) => {
    const now = performance.now();
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      for (const [, sentAtMs] of line.matchAll(stamp)) ways.push(now - Number(sentAtMs));
    }
  });
  if (status !== 200 || ways.length !== count) {
    throw new Error(`${ways.length} of ${count} tokens came, status ${status}`);
  }
  const promptest = Math.min(...ways);
  return ways.map((way) => way - promptest);
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
