/** The cost of relaying: CPU time at a realistic pace, and maximum throughput. */
import { eachRound, type Figure, milliseconds, ratioFigure, type Row } from "../bench.ts";
import type { HttpConnection } from "../http_connection.ts";
import { assertReceived, assertStored, chatBody, plainBody } from "../parlor.ts";
import { cpuMs } from "../process_facts.ts";
import { compare, median } from "../stats.ts";
import type { Answer } from "../upstream_chunks.ts";
import { RelaySides } from "./relay_sides.ts";

const STREAMS = 32;
/** A reply of usual length: 8 s, and with 32 streams enough ticks of the kernel's clock. */
const PACED = { mode: "paced", perSecond: 50, count: 400 } as const;
const FLOOD = { mode: "flood", count: 6_250 } as const;
const FLOOD_CHUNKS_PER_SECOND = 60_000;
const CHUNKS_SHOWN = 10_000;

/** CPU time of relaying. */
export const cpuRow: Row = {
  name: "cpu",
  about: "CPU per 10,000 relayed chunks, 32 streams at 50 a second",
  async run(bench) {
    await using sides = await RelaySides.open(bench, "counterparts/parsing_relay.ts");
    const own = ownStreams(sides, await sides.connect(sides.parlor.port, STREAMS));
    const limit = limitStreams(await sides.connect(sides.relay.port, STREAMS));
    const scale = CHUNKS_SHOWN / (STREAMS * PACED.count);
    const cpuOf = async (pid: number, work: () => Promise<Run>) => {
      const before = await cpuMs(pid);
      const { verify } = await work();
      const ms = (await cpuMs(pid) - before) * scale;
      // Reading the stored replies is part of the check, not of relaying.
      await verify();
      return ms;
    };
    const rounds = await eachRound(bench, "cpu", async () => {
      // Both at once: at this pace there are idle cores, and disturbances affect both.
      const [ownMs, limitMs] = await Promise.all([
        cpuOf(sides.parlor.pid, () => own(PACED)),
        cpuOf(sides.relay.pid, () => limit(PACED)),
      ]);
      return { own: ownMs, limit: limitMs };
    });
    const what = "CPU per 10,000 relayed chunks, parsed, batched, journaled, sent and stored (32 streams at 50/s)";
    const counterpart = "parsing relay without storing";
    return [ratioFigure({ what, counterpart, unit: milliseconds, atMost: 1.4 }, compare(rounds))];
  },
};

/** Maximum throughput. */
export const floodRow: Row = {
  name: "flood",
  about: "flood: 32 streams, every chunk delivered and stored",
  async run(bench): Promise<Figure[]> {
    await using sides = await RelaySides.open(bench, "counterparts/parsing_relay.ts");
    const own = ownStreams(sides, await sides.connect(sides.parlor.port, STREAMS));
    const limit = limitStreams(await sides.connect(sides.relay.port, STREAMS));
    const chunksPerSecond = (ms: number) => (STREAMS * FLOOD.count) / (ms / 1000);
    const rounds = await eachRound(bench, "flood", async () => ({
      own: chunksPerSecond((await verified(own(FLOOD))).ms),
      limit: chunksPerSecond((await verified(limit(FLOOD))).ms),
    }));
    const reached = median(rounds.map((round) => round.own));
    return [{
      what: "flood: 32 streams, every chunk delivered, stored and compared",
      own: `${Math.round(reached).toLocaleString("en")} chunks/s`,
      limit: `${Math.round(median(rounds.map((round) => round.limit))).toLocaleString("en")} chunks/s`,
      counterpart: "parsing relay without storing",
      ratio: compare(rounds).ratio,
      target: "≥ 60,000 chunks/s",
      isReached: reached >= FLOOD_CHUNKS_PER_SECOND,
    }];
  },
};

type Kind = typeof PACED | typeof FLOOD;

/** Runs all streams once. */
interface Run {
  /** Time until everything was delivered and stored. */
  ms: number;
  /** Throws unless clients and storage have exactly the sent text. */
  verify(): Promise<void>;
}

async function verified(running: Promise<Run>): Promise<Run> {
  const run = await running;
  await run.verify();
  return run;
}

/** Runs all streams through Parlor, each in a conversation of its own. */
function ownStreams(sides: RelaySides, connections: HttpConnection[]) {
  return async (kind: Kind): Promise<Run> => {
    const asked = connections.map((connection, n) => {
      const answer: Answer = { ...kind, tag: `s${n}` };
      return { connection, answer, conversationId: crypto.randomUUID(), messageId: crypto.randomUUID() };
    });
    const beganAt = performance.now();
    const bodies = await Promise.all(
      asked.map(({ connection, answer, conversationId, messageId }) =>
        connection.bytes("POST", "/api/chat", chatBody(conversationId, messageId, answer))
      ),
    );
    await sides.parlor.allSettled();
    const ms = performance.now() - beganAt;
    const verify = async () => {
      for (const [n, { answer, conversationId, messageId }] of asked.entries()) {
        assertReceived(bodies[n]!, answer);
        assertStored(await sides.parlor.messages(conversationId), messageId, answer);
      }
    };
    return { ms, verify };
  };
}

/** Runs all streams through the bare relay. */
function limitStreams(connections: HttpConnection[]) {
  return async (kind: Kind): Promise<Run> => {
    const answers = connections.map((_, n): Answer => ({ ...kind, tag: `s${n}` }));
    const beganAt = performance.now();
    const bodies = await Promise.all(
      connections.map((connection, n) => connection.bytes("POST", "/", plainBody(answers[n]!))),
    );
    const ms = performance.now() - beganAt;
    const verify = () => {
      answers.forEach((answer, n) => assertReceived(bodies[n]!, answer));
      return Promise.resolve();
    };
    return { ms, verify };
  };
}
