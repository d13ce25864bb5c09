/** Changing one message must cost the same in a long conversation as in a short one. */
import {
  eachRound,
  type Figure,
  freshFolder,
  kibibytes,
  milliseconds,
  ratioFigure,
  type Row,
  startHere,
} from "../bench.ts";
import { chatBody, Parlor } from "../parlor.ts";
import { writtenBytes } from "../process_facts.ts";
import { numbers, sampleMessages, sampleText } from "../sample_chat.ts";
import { compare, median } from "../stats.ts";

const LONG = 10_000;
/** Fills one block. */
const SHORT = 40;
/** Changes of each kind in one round, each in a different block or short conversation. */
const TIMES = 25;
const KINDS = ["edit", "append", "delete"] as const;
const WHAT = { edit: "edit one message", append: "append a turn and its reply", delete: "delete one message" };

/** One message of 10,000 against one of 40. */
export const oneMessageRow: Row = {
  name: "one-message",
  about: "edit, append, delete one message in 10,000 messages against in 40",
  async run(bench) {
    const upstream = await startHere(bench, "upstream_source.ts");
    const parlor = await Parlor.open({ programs: bench.programs, dataDir: await freshFolder(bench) });
    await parlor.useUpstream(upstream.port);
    const rounds = await eachRound(bench, "one-message", () => oneRound(parlor));
    await Promise.all([parlor.stop(), upstream.stop()]);
    return KINDS.flatMap((kind) => figuresOf(kind, rounds.map((round) => round[kind])));
  },
};

/** The cost of one change. */
interface Cost {
  ms: number;
  bytes: number;
}

interface Costs {
  long: Cost[];
  short: Cost[];
}

/** Unchanged conversations. */
interface Fresh {
  id: string;
  mids: string[];
}

async function oneRound(parlor: Parlor): Promise<Record<(typeof KINDS)[number], Costs>> {
  const long = await put(parlor, LONG);
  const shorts: Fresh[] = [];
  for (let n = 0; n < TIMES; n++) shorts.push(await put(parlor, SHORT));
  const next = numbers(7);
  const costs = {
    edit: { long: [], short: [] } as Costs,
    append: { long: [], short: [] } as Costs,
    delete: { long: [], short: [] } as Costs,
  };
  const measure = async (into: Cost[], work: () => Promise<unknown>) => {
    const bytesBefore = writtenBytes(parlor.pid);
    const beganAt = performance.now();
    await work();
    into.push({ ms: performance.now() - beganAt, bytes: writtenBytes(parlor.pid) - bytesBefore });
  };
  const message = ({ id, mids }: Fresh, n: number) => `/api/conversations/${id}/messages/${mids[n]}`;
  const edit = (path: string) => parlor.control.bytes("PATCH", path, JSON.stringify({ content: sampleText(next) }));
  const append = ({ id }: Fresh) => {
    const body = JSON.parse(chatBody(id, crypto.randomUUID(), { mode: "flood", count: 20, tag: "turn" }));
    return parlor.control.bytes("POST", "/api/chat", JSON.stringify({ ...body, stream: false }));
  };
  // A short conversation that grows by the same messages as the long one.
  const growing = await put(parlor, SHORT);
  for (const [n, short] of shorts.entries()) {
    const inLong = Math.floor(((n + 0.5) / TIMES) * LONG);
    const inShort = Math.floor(((n + 0.5) / TIMES) * SHORT);
    await measure(costs.edit.long, () => edit(message(long, inLong)));
    await measure(costs.edit.short, () => edit(message(short, inShort)));
    await measure(costs.append.long, () => append(long));
    await parlor.allSettled();
    await measure(costs.append.short, () => append(growing));
    await parlor.allSettled();
    await measure(costs.delete.long, () => parlor.control.bytes("DELETE", message(long, inLong)));
    await measure(costs.delete.short, () => parlor.control.bytes("DELETE", message(short, inShort)));
  }
  for (const { id } of [long, growing, ...shorts]) await parlor.control.bytes("DELETE", `/api/conversations/${id}`);
  return costs;
}

async function put(parlor: Parlor, count: number): Promise<Fresh> {
  const id = crypto.randomUUID();
  const messages = sampleMessages(count, count);
  await parlor.control.bytes("PUT", `/api/conversations/${id}`, JSON.stringify({ title: "One of many", messages }));
  return { id, mids: messages.map((message) => message.id) };
}

function figuresOf(kind: (typeof KINDS)[number], rounds: Costs[]): Figure[] {
  const of = (field: keyof Cost) =>
    compare(rounds.map(({ long, short }) => ({
      own: median(long.map((cost) => cost[field])),
      limit: median(short.map((cost) => cost[field])),
    })));
  const common = { counterpart: "the same in 40 messages", atMost: 1.5 };
  return [
    ratioFigure({ ...common, what: `${WHAT[kind]} in 10,000, time`, unit: milliseconds }, of("ms")),
    ratioFigure({ ...common, what: `${WHAT[kind]} in 10,000, bytes written`, unit: kibibytes }, of("bytes")),
  ];
}
