/** Delay added to the first token, compared with the model server alone, while other streams run. */
import { type Bench, eachRound, type Figure, milliseconds, ratioFigure, type Row } from "../bench.ts";
import type { HttpConnection } from "../http_connection.ts";
import { chatBody, plainBody } from "../parlor.ts";
import { compare, median, quantile } from "../stats.ts";
import { type Answer, modelOf } from "../upstream_chunks.ts";
import { RelaySides } from "./relay_sides.ts";

/** The other streams: 20 tokens per second, like a fast model. */
const BACKGROUND_PER_SECOND = 20;
/** Delay until the other streams run evenly. */
const SETTLE_MS = 400;
/** The timed reply. The tokens after the first separate it from the end. */
const PROBE: Answer = { mode: "paced", perSecond: 200, count: 2, tag: "probe" };
const FIRST_TOKEN = '"content":" ';
/** Conversations that a prober rotates through, so that each has stored its last reply before the next request. */
const CONVERSATIONS = 4;

/** Minimum number of requests for a 99th percentile. */
const TAIL_SAMPLES = 500;

/** Numbers of streams, with the number of probers and the duration of each. */
const LOADS = [
  { streams: 1, probers: 1, ms: 1000 },
  { streams: 32, probers: 1, ms: 1500 },
  { streams: 128, probers: 2, ms: 2500 },
];

/** Time to first token added. */
export const firstTokenRow: Row = {
  name: "first-token",
  about: "added time to first token, 1, 32 and 128 streams",
  async run(bench) {
    await using sides = await RelaySides.open(bench, "counterparts/pass_through.ts");
    const figures: Figure[] = [];
    for (const load of LOADS) figures.push(...await measureLoad(bench, sides, load));
    return figures;
  },
};

interface Load {
  streams: number;
  probers: number;
  ms: number;
}

/** One route of a request. */
interface Side {
  port: number;
  path: string;
  body(conversationId: string, answer: Answer): string;
  /** Waits until all work for the last replies is done. */
  rest(): Promise<void>;
}

/** The connections of one prober: to the measured side and to the model server. */
interface Prober {
  through: HttpConnection;
  direct: HttpConnection;
  conversations: string[];
}

async function measureLoad(bench: Bench, sides: RelaySides, load: Load): Promise<Figure[]> {
  const { parlor, relay, upstream } = sides;
  const nothing = () => Promise.resolve();
  const plain = (_: string, answer: Answer) => plainBody(answer);
  const stateful: Side = {
    port: parlor.port,
    path: "/api/chat",
    body: (conversationId, answer) => chatBody(conversationId, crypto.randomUUID(), answer),
    rest: () => parlor.allSettled(),
  };
  const stateless: Side = { port: parlor.port, path: "/api/chat", body: plain, rest: nothing };
  const passing: Side = { port: relay.port, path: "/", body: plain, rest: nothing };
  const prepare = async (side: Side) => ({
    side,
    background: await sides.connect(side.port, load.streams - load.probers),
    probers: await Promise.all(Array.from({ length: load.probers }, async (): Promise<Prober> => ({
      through: (await sides.connect(side.port, 1))[0]!,
      direct: (await sides.connect(upstream.port, 1))[0]!,
      conversations: Array.from({ length: CONVERSATIONS }, () => crypto.randomUUID()),
    }))),
  });
  const ways = [await prepare(stateful), await prepare(passing), await prepare(stateless)];
  const rounds = await eachRound(bench, `first-token, ${load.streams} streams`, async () => {
    const added: number[][] = [];
    for (const way of ways) added.push(await addedTimes(way.side, way.background, way.probers, load.ms));
    return added;
  });
  const [own, limit, ownStateless] = ways.map((_, side) => rounds.map((round) => round[side]!)) as [
    number[][],
    number[][],
    number[][],
  ];
  const streams = load.streams === 1 ? "1 stream" : `${load.streams} streams`;
  const counterpart = "Deno.serve passing the body through";
  const middle = (values: number[][]) =>
    compare(values.map((round, n) => ({ own: median(round), limit: median(limit[n]!) })));
  const tail = (values: number[][]) => {
    const [ownTail, limitTail] = [quantile(values.flat(), 0.99), quantile(limit.flat(), 0.99)];
    return { own: ownTail, limit: limitTail, ratio: ownTail / limitTail };
  };
  const common = { counterpart, unit: milliseconds };
  const figures = [
    ratioFigure({ ...common, what: `added time to first token, ${streams}, p50`, atMost: 3 }, middle(own)),
  ];
  if (load.streams === 128) {
    const samples = own.flat().length;
    const what = `added time to first token, ${streams}, p99 of ${samples} requests`;
    const figure = ratioFigure({ ...common, what, atMost: 4 }, tail(own));
    figures.push(samples >= TAIL_SAMPLES ? figure : { ...figure, what: `${what} (too few)`, isReached: undefined });
  }
  const informs = ratioFigure(
    { ...common, what: `time to first token without a conversation, ${streams}, p50`, atMost: 1.5 },
    middle(ownStateless),
  );
  return [...figures, { ...informs, target: "–", isReached: undefined }];
}

/** Returns the times of one phase, minus the median time of the model server alone in the same phase. */
async function addedTimes(
  side: Side,
  background: HttpConnection[],
  probers: Prober[],
  forMs: number,
): Promise<number[]> {
  const count = Math.ceil(((SETTLE_MS + forMs) / 1000) * BACKGROUND_PER_SECOND) + BACKGROUND_PER_SECOND / 2;
  const running = background.map((connection, n) => {
    const answer: Answer = { mode: "paced", perSecond: BACKGROUND_PER_SECOND, count, tag: `b${n}` };
    return connection.bytes("POST", side.path, side.body(crypto.randomUUID(), answer));
  });
  await new Promise((resolve) => setTimeout(resolve, background.length > 0 ? SETTLE_MS : 0));
  const [through, direct]: [number[], number[]] = [[], []];
  const until = performance.now() + forMs;
  await Promise.all(probers.map(async (prober) => {
    for (let n = 0; performance.now() < until; n++) {
      const body = side.body(prober.conversations[n % CONVERSATIONS]!, PROBE);
      through.push(await timeToFirstToken(prober.through, side.path, body));
      direct.push(await timeToFirstToken(prober.direct, "/v1/chat/completions", plainBody(PROBE)));
    }
  }));
  await Promise.all(running);
  await side.rest();
  const straight = median(direct);
  return through.map((ms) => ms - straight);
}

/** Sends a request, reads the whole response, and returns the ms until its first token. */
async function timeToFirstToken(connection: HttpConnection, path: string, body: string): Promise<number> {
  let text = "";
  let foundAt: number | undefined;
  const beganAt = performance.now();
  const { status } = await connection.request("POST", path, body, (bytes) => {
    if (foundAt !== undefined) return;
    text += new TextDecoder().decode(bytes);
    if (text.includes(FIRST_TOKEN)) foundAt = performance.now();
  });
  if (status !== 200 || foundAt === undefined) {
    throw new Error(`No token came of ${modelOf(PROBE)}: status ${status}, ${text.slice(0, 300)}`);
  }
  return foundAt - beganAt;
}
