import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { openFakeHub, sha256 } from "../helpers/fakes/fake_hub.ts";
import { ggufFile } from "../helpers/files/gguf_file.ts";
import { sample } from "../helpers/files/sample.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";

const MEBIBYTES = sample(96, 1024);
const SIZE = MEBIBYTES.count * 1024 * 1024;
const CUTS = 10;
/** Bytes between two faults: ten cuts and two kills. */
const STEP = Math.floor(SIZE / 14);
const ASK = { repo: "owner/name", format: "gguf", file: "big.gguf" };
const PATIENT = { timeout: 60_000, interval: 20 };

interface Download {
  state: string;
  received_bytes: number;
  error?: { message: string };
}

/** Bytes without repetition, so that misplaced ones are noticed. */
function largeModel(): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(SIZE);
  for (let at = 0; at < SIZE; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  bytes.set(ggufFile());
  return bytes;
}

async function hashOnDisk(path: string): Promise<string | undefined> {
  const file = await Deno.open(path).catch(() => undefined);
  if (file === undefined) return undefined;
  const hash = createHash("sha256");
  for await (const bytes of file.readable) hash.update(bytes);
  return hash.digest("hex");
}

test(
  `a file of ${MEBIBYTES} MiB survives ten lost connections and kill -9 before, during and after its bytes`,
  { tags: ["M05"], timeout: 600_000 },
  async () => {
    const model = largeModel();
    await using hub = openFakeHub({ "owner/name": { files: { "big.gguf": model } } });
    await using folder = await tempFolder();
    const expected = sha256(model);
    const start = () =>
      startChildServer({
        dataDir: folder.path,
        args: ["--hub-url", hub.url, "--guard-allow", "127.0.0.2/31"],
      });
    const download = async (server: ChildServer) => (await server.json<Download[]>("GET", "/api/models/downloads"))[0]!;
    const untilReceived = (server: ChildServer, bytes: number) =>
      expect.poll(async () => (await download(server)).received_bytes, PATIENT).toBe(bytes);
    /** Kills the server; if the final file exists, it must be correct. */
    const kill = async (server: ChildServer) => {
      await server.kill("SIGKILL");
      expect([undefined, expected]).toContain(await hashOnDisk(`${folder.path}/models/owner/name/big.gguf`));
    };
    const held = () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      return { until: promise, release: resolve };
    };

    // Before the first byte: connected, but nothing has arrived.
    const silence = held();
    hub.faults.hold = { afterBytes: 0, until: silence.until };
    {
      await using server = await start();
      await server.json("POST", "/api/models/download", ASK);
      await hub.untilTransfers(1);
      await kill(server);
    }
    silence.release();

    // During the transfer, after half of the cuts.
    const middle = held();
    hub.faults.hold = { afterBytes: STEP, until: middle.until };
    hub.faults.cutAfter = Array.from({ length: CUTS / 2 }, () => STEP);
    {
      await using server = await start();
      await untilReceived(server, STEP * (CUTS / 2 + 1));
      expect(await server.json("GET", "/api/models/local")).toEqual([]);
      await kill(server);
    }
    middle.release();

    // At the last byte, when the file is checked and renamed.
    const end = held();
    const kept = STEP * (CUTS / 2 + 1);
    hub.faults.hold = { afterBytes: SIZE - kept - STEP * (CUTS / 2) - 1, until: end.until };
    hub.faults.cutAfter = Array.from({ length: CUTS / 2 }, () => STEP);
    const before = hub.transfers().length;
    {
      await using server = await start();
      await untilReceived(server, SIZE - 1);
      expect(hub.transfers()[before]!.headers.get("range")).toBe(`bytes=${kept}-`);
      expect(await server.json("GET", "/api/models/local")).toEqual([]);
      end.release();
      await kill(server);
    }

    hub.faults.hold = undefined;
    await using server = await start();
    await expect.poll(async () => (await download(server)).state, PATIENT).toBe("done");
    expect(await server.json("GET", "/api/models/local")).toMatchObject([{
      path: "owner/name/big.gguf",
      size_bytes: SIZE,
    }]);
    expect(await hashOnDisk(`${folder.path}/models/owner/name/big.gguf`)).toBe(expected);
  },
);

test("a large file with one wrong bit fails, and neither it nor its parts remain", async () => {
  const model = largeModel().subarray(0, 32 * 1024 * 1024);
  await using hub = openFakeHub({ "owner/name": { files: { "big.gguf": model } } });
  hub.faults.isCorrupt = true;
  await using folder = await tempFolder();
  await using server = await startChildServer({
    dataDir: folder.path,
    args: ["--hub-url", hub.url, "--guard-allow", "127.0.0.2/31"],
  });
  await server.json("POST", "/api/models/download", ASK);
  const seen: unknown[] = [];
  await expect.poll(async () => {
    seen.push(...await server.json<unknown[]>("GET", "/api/models/local"));
    return (await server.json<Download[]>("GET", "/api/models/downloads"))[0];
  }, PATIENT).toMatchObject({ state: "failed", error: { message: expect.stringMatching(/hash/) } });
  expect(seen).toEqual([]);
  expect(await hashOnDisk(`${folder.path}/models/owner/name/big.gguf`)).toBeUndefined();
}, 300_000);
