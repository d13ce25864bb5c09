/**
 * Clients that only listen: `deno run -A stream_listener.ts PORT` answers each line `STREAMS COUNT` on standard input by
 * asking for so many answers of so many tokens at once, and prints how late their tokens were. A process of its own, so
 * that whatever else a benchmark does meanwhile makes no token late.
 */
import { HttpConnection } from "./http_connection.ts";
import { chatBody } from "./parlor.ts";
import type { Answer } from "./upstream_chunks.ts";
import { quantile } from "./stats.ts";

/** The pace of a fast model. */
export const TOKENS_PER_SECOND = 20;
/** Time after the first token of the last stream until all work of the start is done. */
const BEGIN_MS = 250;

/** Lag of all tokens, in ms: each token's delay minus the smallest delay in its stream. */
export interface Lags {
  p99: number;
  worst: number;
  tokens: number;
}

/** One token. */
interface Arrival {
  /** By the model server's clock. */
  sentAtMs: number;
  /** By ours. */
  cameAtMs: number;
}

/**
 * Each token says when the model server sent it, so that lateness of that server's own timers is none of the relay's. The
 * clocks differ by a time that is the same for all tokens and falls out with the promptest one's. What counts was sent when
 * all streams were running: thirty-two that begin at the same moment are a subject of their own.
 */
async function listen(connections: HttpConnection[], count: number): Promise<Lags> {
  const streams = await Promise.all(connections.map((connection, n) => arrivalsOf(connection, `s${n}`, count)));
  const begunAtMs = Math.max(...streams.map(([first]) => first!.sentAtMs));
  const lags = streams.flatMap((arrivals) => {
    const ways = arrivals.filter(({ sentAtMs }) => sentAtMs >= begunAtMs + BEGIN_MS)
      .map(({ sentAtMs, cameAtMs }) => cameAtMs - sentAtMs);
    const promptest = Math.min(...ways);
    return ways.map((way) => way - promptest);
  });
  return { p99: quantile(lags, 0.99), worst: quantile(lags, 1), tokens: lags.length };
}

async function arrivalsOf(connection: HttpConnection, tag: string, count: number): Promise<Arrival[]> {
  const answer: Answer = { mode: "stamped", perSecond: TOKENS_PER_SECOND, count, tag };
  const decoder = new TextDecoder();
  const stamp = new RegExp(` ${tag}\\.\\d+@([\\d.]+)`, "g");
  const arrivals: Arrival[] = [];
  let rest = "";
  const body = chatBody(crypto.randomUUID(), crypto.randomUUID(), answer);
  const { status } = await connection.request("POST", "/api/chat", body, (bytes) => {
    const cameAtMs = performance.now();
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      for (const [, sentAtMs] of line.matchAll(stamp)) arrivals.push({ sentAtMs: Number(sentAtMs), cameAtMs });
    }
  });
  if (status !== 200 || arrivals.length !== count) {
    throw new Error(`${arrivals.length} of ${count} tokens came, status ${status}`);
  }
  return arrivals;
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
