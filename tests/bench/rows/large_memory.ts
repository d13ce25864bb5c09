/** Peak memory of the server during large requests. Each kind has its own server. */
import { type Bench, type Figure, freshFolder, mebibytes, type Row } from "../bench.ts";
import { HttpConnection } from "../http_connection.ts";
import { Parlor } from "../parlor.ts";
import { forgetPeak, peakBytes, residentBytes } from "../process_facts.ts";
import { median } from "../stats.ts";
import { importChats, largeConversation, unreadAnswers, zipOfChats } from "../../helpers/app/large_requests.ts";

const AT_MOST_BYTES = 400 * 1024 * 1024;
const PUTS = { count: 3, bytes: 38_000_000 };
const IMPORTED = { chats: 40, chatBytes: 20_000_000 };
const UNREAD = { lists: 400, conversations: 3, bytes: 46_000_000 };
/** The first requests of a page, so that the server's code is loaded. */
const FIRST_PATHS = ["/api/conversations?view=summary", "/api/settings", "/api/chat/replies"];
/** Status of a large save that is refused for lack of memory. */
const BUSY = 503;

/** One kind of large requests. */
interface LargeJob {
  what: string;
  prepare?(parlor: Parlor): Promise<void>;
  work(parlor: Parlor): Promise<void>;
}

const JOBS: LargeJob[] = [
  {
    what: `${PUTS.count} PUTs of ${PUTS.bytes / 1e6} MB at once`,
    async work({ port }) {
      const bodies = Array.from({ length: PUTS.count }, (_, n) => largeConversation(PUTS.bytes, { seed: n + 1 }));
      await Promise.all(bodies.map((body, n) => save(port, n, body)));
    },
  },
  {
    what: `an import of ${IMPORTED.chats} chats of ${IMPORTED.chatBytes / 1e6} MB`,
    async work({ port }) {
      const zip = await zipOfChats(IMPORTED.chats, IMPORTED.chatBytes);
      const { state, added } = await importChats(`http://127.0.0.1:${port}`, zip);
      if (state !== "done" || added === 0) throw new Error(`The import ended as ${state} with ${added} chats`);
    },
  },
  {
    what: `${UNREAD.lists} unread lists of ${UNREAD.conversations} conversations of ${UNREAD.bytes / 1e6} MB`,
    async prepare({ port }) {
      for (let n = 0; n < UNREAD.conversations; n++) {
        await save(port, n, largeConversation(UNREAD.bytes, { seed: n + 1 }));
      }
    },
    async work({ port, control }) {
      using _ = await unreadAnswers(port, "/api/conversations", UNREAD.lists);
      // Other requests get a response in the meantime.
      await control.bytes("GET", "/api/conversations?view=summary");
      await control.request("GET", "/api/conversations");
    },
  },
];

/** Memory of large requests. */
export const largeMemoryRow: Row = {
  name: "large-memory",
  about: "memory during large saves, an import and unread lists",
  async run(bench) {
    const figures: Figure[] = [];
    for (const job of JOBS) figures.push(await measure(bench, job));
    return figures;
  },
};

async function measure(bench: Bench, { what, prepare, work }: LargeJob): Promise<Figure> {
  const rises: number[] = [];
  for (let round = 1; round <= bench.rounds; round++) {
    // A second import into the same folder would find all chats already imported.
    const dataDir = await freshFolder(bench);
    const open = () => Parlor.open({ programs: bench.programs, dataDir });
    if (prepare !== undefined) {
      const parlor = await open();
      await prepare(parlor);
      await parlor.stop();
    }
    const parlor = await open();
    for (const path of FIRST_PATHS) await parlor.control.bytes("GET", path);
    const idleBytes = await residentBytes(parlor.pid);
    await forgetPeak(parlor.pid);
    await work(parlor);
    rises.push(await peakBytes(parlor.pid) - idleBytes);
    await parlor.stop();
    bench.progress(`large-memory, ${what}: round ${round} of ${bench.rounds}`);
  }
  const rise = median(rises);
  return {
    what: `memory above idle (RSS) during ${what}`,
    own: mebibytes(rise),
    limit: "–",
    counterpart: "–",
    target: `+ ≤ ${AT_MOST_BYTES / 1024 / 1024} MiB`,
    isReached: rise <= AT_MOST_BYTES,
  };
}

async function save(port: number, n: number, body: Uint8Array<ArrayBuffer>): Promise<void> {
  using connection = await HttpConnection.open(port);
  const { status } = await connection.request("PUT", `/api/conversations/large-${n}`, body);
  if (status >= 300 && status !== BUSY) throw new Error(`A save was answered with ${status}`);
}
