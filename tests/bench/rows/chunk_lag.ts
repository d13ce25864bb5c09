/** Lag of the tokens of running replies while the server does other work. */
import { type Bench, eachRound, type Figure, freshFolder, milliseconds, type Row, startHere } from "../bench.ts";
import { HttpConnection } from "../http_connection.ts";
import { Parlor } from "../parlor.ts";
import { samplePortrait } from "../sample_cards.ts";
import { numbers, sampleMessages, sampleText } from "../sample_chat.ts";
import { importChats, largeConversation, unreadAnswers, zipOfChats } from "../../helpers/app/large_requests.ts";
import { BRACES, DOUBLING, LEVELS } from "../../helpers/files/macro_attacks.ts";
import { fillLibrary } from "../sample_library.ts";
import { median } from "../stats.ts";
import { download, hubArgs, removeDownload } from "./download.ts";
import type { Program } from "../child.ts";
import { type Lags, TOKENS_PER_SECOND } from "../stream_listener.ts";

const STREAMS = 32;
const SECONDS = 3;
const AT_MOST_MS = 50;
const LARGE = "/api/conversations/large";
const LARGE_MESSAGES = 10_000;

/** Work besides replies, repeated as long as the replies run. */
interface OtherJob {
  what: string;
  /** Target; 50 ms by default. */
  atMostMs?: number;
  /** Adds a line for the streams of a bare relay during the same work: the lag caused by the two cores alone. */
  isBesideRelay?: boolean;
  work(connection: HttpConnection, next: () => number, port: number): Promise<unknown>;
}

const PORTRAITS = 4;
/** Each width is created once, then cached. */
const WIDTHS_PX = { from: 64, to: 960 };

/** Bodies of the large requests, created once. */
const LARGE_PUTS = 2;
const LARGE_PUT_BYTES = 7_000_000;
const UNREAD_LISTS = 50;
const IMPORTED = { chats: 4, chatBytes: 5_000_000 };

/** All large requests at once. */
async function manyLarge(port: number, next: () => number): Promise<void> {
  const url = `http://127.0.0.1:${port}`;
  using _ = await unreadAnswers(port, "/api/conversations", UNREAD_LISTS);
  const puts = Array.from({ length: LARGE_PUTS }, async (_, n) => {
    using connection = await HttpConnection.open(port);
    await connection.bytes(
      "PUT",
      `/api/conversations/large-${n}`,
      largeConversation(LARGE_PUT_BYTES, { seed: next() }),
    );
  });
  await Promise.all([...puts, zipOfChats(IMPORTED.chats, IMPORTED.chatBytes).then((zip) => importChats(url, zip))]);
}

/** Cards with the most expensive macros: each is saved again and starts a chat. */
async function startHostileChats(connection: HttpConnection): Promise<void> {
  for (const [id, fields] of Object.entries(HOSTILE_CARDS)) {
    const card = { spec: "chara_card_v3", spec_version: "3.0", data: { name: id, ...fields } };
    await connection.bytes("PUT", `/api/characters/${id}`, JSON.stringify({ card }));
    const chat = await connection.json<{ id: string }>("POST", "/api/conversations", { character_ids: [id] });
    await connection.bytes("DELETE", `/api/conversations/${chat.id}`);
  }
}

const HOSTILE_CARDS = {
  doubling: { first_mes: DOUBLING },
  levels: { ...LEVELS, first_mes: "{{description}}" },
  braces: { first_mes: BRACES },
};

const JOBS: OtherJob[] = [
  { what: "1,000 conversations listed in full", work: (connection) => drain(connection, "/api/conversations") },
  {
    what: "1,000 summaries listed",
    work: (connection) => drain(connection, "/api/conversations?view=summary&limit=500"),
  },
  { what: "110,000 messages searched", work: (connection) => drain(connection, "/api/search?q=nowhere") },
  {
    what: "10,000 messages saved at once",
    work: (connection, next) => connection.bytes("PUT", LARGE, largeBody(next)),
  },
  { what: "10,000 messages loaded at once", work: (connection) => drain(connection, LARGE) },
  {
    what: "one message of 10,000 edited",
    work: (connection, next) =>
      connection.bytes(
        "PATCH",
        `${LARGE}/messages/l${next() % LARGE_MESSAGES}`,
        JSON.stringify({ content: sampleText(next) }),
      ),
  },
  {
    what: "avatars of 1024×1536 resized",
    atMostMs: 10,
    isBesideRelay: true,
    async work(connection, next) {
      const list = await connection.json<{ id: string; external: boolean }[]>("GET", "/api/characters");
      const portraits = list.filter(({ external }) => external);
      await drain(connection, `/api/characters/${portraits[next() % PORTRAITS]!.id}/avatar?w=${widthOf(next())}`);
    },
  },
  {
    what: "a model of 1 GiB downloaded",
    async work(connection) {
      await download(connection);
      await removeDownload(connection);
    },
  },
];

const LARGE_JOBS: OtherJob[] = [
  {
    what: `${LARGE_PUTS} PUTs of 7 MB, an import and ${UNREAD_LISTS} unread lists at once`,
    atMostMs: 100,
    work: (_, next, port) => manyLarge(port, next),
  },
  {
    what: "the same and chats with three cards of hostile macros",
    atMostMs: 100,
    work: (connection, next, port) => Promise.all([manyLarge(port, next), startHostileChats(connection)]),
  },
];

/** Chunk lag. */
export const chunkLagRow: Row = {
  name: "chunk-lag",
  about: "lateness of the tokens of 32 replies during each other job",
  run: (bench) => chunkLag(bench, JOBS),
};

/** Chunk lag during large requests. */
export const largeLagRow: Row = {
  name: "chunk-lag-large",
  about: "lateness of the tokens of 32 replies during large saves, an import and unread lists",
  run: (bench) => chunkLag(bench, LARGE_JOBS),
};

async function chunkLag(bench: Bench, jobs: readonly OtherJob[]): Promise<Figure[]> {
  const upstream = await startHere(bench, "upstream_source.ts");
  const hub = await startHere(bench, "counterparts/large_file.ts");
  const [cards, dataDir] = [await freshFolder(bench), await freshFolder(bench)];
  for (let n = 0; n < PORTRAITS; n++) await Deno.writeFile(`${cards}/portrait-${n}.png`, samplePortrait());
  await Deno.writeTextFile(`${dataDir}/config.toml`, `card_dirs = [${JSON.stringify(cards)}]\n`);
  const parlor = await Parlor.open({ programs: bench.programs, dataDir, args: hubArgs(hub.port) });
  await parlor.useUpstream(upstream.port);
  bench.progress("chunk-lag: making 1,000 conversations and one of 10,000 messages");
  await fillLibrary(parlor, { conversations: 1_000, messages: 100 });
  const next = numbers(3);
  await parlor.control.bytes("PUT", LARGE, largeBody(next));
  const relay = await startHere(
    bench,
    "counterparts/pass_through.ts",
    `http://127.0.0.1:${upstream.port}/v1/chat/completions`,
  );
  const listener = await startHere(bench, "stream_listener.ts", String(parlor.port));
  const relayListener = await startHere(bench, "stream_listener.ts", String(relay.port));
  const lags = async (through: Program) => {
    const found: Lags = JSON.parse(await through.ask(`${STREAMS} ${SECONDS * TOKENS_PER_SECOND}`));
    await parlor.allSettled();
    return found.p99;
  };
  const what = `chunk lag p99 of ${STREAMS} streams at ${TOKENS_PER_SECOND}/s`;
  const bare = { counterpart: "Deno.serve passing the body through", target: "–" };

  const quiet = await eachRound(bench, "chunk-lag, idle", async () => ({
    own: await lags(listener),
    limit: await lags(relayListener),
  }));
  const figures: Figure[] = [{
    what: `${what}, idle server`,
    ...bare,
    own: milliseconds(median(quiet.map(({ own }) => own))),
    limit: milliseconds(median(quiet.map(({ limit }) => limit))),
  }];
  for (const { what: job, work, atMostMs = AT_MOST_MS, isBesideRelay = false } of jobs) {
    using connection = await HttpConnection.open(parlor.port);
    const whileWorking = async (through: Program) => {
      let isOver = false;
      const busy = lags(through).finally(() => isOver = true);
      while (!isOver) await work(connection, next, parlor.port);
      return await busy;
    };
    const rounds = await eachRound(bench, `chunk-lag, ${job}`, async () => ({
      idle: await lags(listener),
      own: await whileWorking(listener),
      beside: isBesideRelay ? await whileWorking(relayListener) : 0,
    }));
    const own = median(rounds.map((round) => round.own));
    figures.push({
      what: `${what}, ${job}`,
      own: milliseconds(own),
      limit: milliseconds(median(rounds.map(({ idle }) => idle))),
      counterpart: "the same, idle",
      target: `≤ ${atMostMs} ms`,
      isReached: own <= atMostMs,
    });
    if (!isBesideRelay) continue;
    figures.push({
      what: `the same streams through a bare relay, ${job}`,
      ...bare,
      own: "–",
      limit: milliseconds(median(rounds.map(({ beside }) => beside))),
    });
  }
  await Promise.all([
    parlor.stop(),
    upstream.stop(),
    relay.stop(),
    hub.stop(),
    listener.stop(),
    relayListener.stop(),
  ]);
  return figures;
}

function widthOf(n: number): number {
  return WIDTHS_PX.from + n % (WIDTHS_PX.to - WIDTHS_PX.from);
}

function largeBody(next: () => number): string {
  const messages = sampleMessages(LARGE_MESSAGES, next()).map((message, n) => ({ ...message, id: `l${n}` }));
  return JSON.stringify({ title: "Large", messages });
}

/** Reads a response and discards it. */
async function drain(connection: HttpConnection, path: string): Promise<void> {
  const { status } = await connection.request("GET", path);
  if (status !== 200) throw new Error(`GET ${path} was answered with ${status}`);
}
