import { expect, test } from "vitest";
import {
  type Aad,
  createOpener,
  createSealer,
  encodeAad,
  encodeUtf8,
  SEAL_OVERHEAD_BYTES,
} from "../../../services/crypto/sealer.ts";
import { randomBytes } from "../../../services/crypto/random.ts";
import { runChild } from "../../helpers/processes/storage_child.ts";

const PLACE: Aad = { table: "draft", id: "c1", field: "sealed", version: 3 };
const key = randomBytes(32);
const sealer = createSealer(key).forPurpose("conversations");
const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const refusal = { code: "internal", message: expect.stringMatching(/^Can't decrypt draft\.sealed of "c1": /) };

/** Runs the same tests with the synchronous and the asynchronous reader. */
const ways = [
  ["seal", (place: Aad, plain: string | Uint8Array) => sealer.seal(place, plain)],
  ["sealNow", (place: Aad, plain: string | Uint8Array) => Promise.resolve(sealer.sealNow(place, plain))],
] as const;

async function expectRefused(place: Aad, sealed: Uint8Array, from = sealer): Promise<void> {
  await expect(from.open(place, sealed)).rejects.toMatchObject({ code: "internal" });
  expect(() => from.openNow(place, sealed)).toThrow(expect.objectContaining({ code: "internal" }));
}

test.each(ways)("opens what %s sealed, sync and async, at any size", async (_, seal) => {
  for (const plain of ["", "a", "tëxt 🦆", "x".repeat(100_000), new Uint8Array(0), randomBytes(70_000)]) {
    const sealed = await seal(PLACE, plain);
    const bytes = typeof plain === "string" ? new TextEncoder().encode(plain) : plain;
    expect(sealed[0]).toBe(1);
    expect(sealed.byteLength).toBe(bytes.byteLength + SEAL_OVERHEAD_BYTES);
    expect(await sealer.open(PLACE, sealed)).toEqual(bytes);
    expect(sealer.openNow(PLACE, sealed)).toEqual(bytes);
  }
});

test("opens a value from another process: the format is stable", () => {
  const fixed = createSealer(new Uint8Array(32).map((_, index) => index)).forPurpose("conversations");
  const sealed = Uint8Array.fromBase64("AXMoZtPZSWB6Ydb2WNYyFSRaXWsfkw2JF6JBOQ/a9wzWCAk=");
  expect(textOf(fixed.openNow(PLACE, sealed))).toBe("parlor");
});

test("seals a view of a larger buffer without leaking plaintext", async () => {
  const sealed = await sealer.seal(PLACE, "a secret long enough to be found");
  const around = new Uint8Array(sealed.byteLength + 20);
  around.set(sealed, 7);
  const part = around.subarray(7, 7 + sealed.byteLength);
  expect(textOf(await sealer.open(PLACE, part))).toBe("a secret long enough to be found");
  expect(textOf(sealer.openNow(PLACE, part))).toBe("a secret long enough to be found");
  expect(textOf(sealed)).not.toContain("secret");
});

test.each([
  ["table", { table: "revision" }],
  ["row", { id: "c2" }],
  ["field", { field: "head" }],
  ["newer version", { version: 4 }],
  ["older version", { version: 2 }],
  ["split of the same letters", { table: "draf", id: "tc1" }],
  ["field that swallows its neighbour", { id: 'c1","sealed', field: "" }],
])("doesn't open a value moved to another %s", { tags: ["K02"] }, async (_, change) => {
  for (const [, seal] of ways) await expectRefused({ ...PLACE, ...change }, await seal(PLACE, "secret"));
});

test("doesn't open a value for another purpose or with another key, and names only its place in the error", {
  tags: ["K02"],
}, async () => {
  const sealed = sealer.sealNow(PLACE, "secret");
  await expectRefused(PLACE, sealed, createSealer(key).forPurpose("connections"));
  await expectRefused(PLACE, sealed, createSealer(randomBytes(32)).forPurpose("conversations"));
  await expect(sealer.open(PLACE, sealer.sealNow({ ...PLACE, version: 9 }, "secret"))).rejects.toMatchObject(refusal);
});

test("creates different additional data for different places", { tags: ["K02"] }, () => {
  const names = ["", "a", "b", "ab", '"', '","', "\\", "a\0b", "é", "e\u0301", "\ud800", "\udbff", "\ufffd", "1"];
  const seen = new Set<string>();
  let count = 0;
  for (const table of names) {
    for (const id of names) {
      for (const field of names) {
        for (const version of [0, 1, 11, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
          seen.add(textOf(encodeAad(1, { table, id, field, version })));
          count++;
        }
      }
    }
  }
  expect(seen.size).toBe(count);
  for (const version of [-1, 0.5, NaN, 2 ** 53]) {
    expect(() => encodeAad(1, { ...PLACE, version })).toThrow("invalid version");
  }
});

test.each(ways)(
  "detects any flipped byte and any truncation of a value from %s",
  { tags: ["K03"] },
  async (_, seal) => {
    const sealed = await seal(PLACE, "a secret of some length");
    for (let at = 0; at < sealed.byteLength; at++) {
      const flipped = sealed.slice();
      flipped[at]! ^= 1 << (at % 8);
      await expectRefused(PLACE, flipped);
      await expectRefused(PLACE, sealed.subarray(0, at));
    }
    await expectRefused(PLACE, new Uint8Array([...sealed, 0]));
    await expectRefused(PLACE, new Uint8Array(0));
    await expectRefused(PLACE, new Uint8Array(SEAL_OVERHEAD_BYTES));
    expect(textOf(await sealer.open(PLACE, sealed))).toBe("a secret of some length");
  },
);

test("reports one damaged value among many", { tags: ["K03"] }, async () => {
  const sealed = await Promise.all(
    Array.from({ length: 20 }, (_, n) => sealer.seal({ ...PLACE, version: n }, `text ${n}`)),
  );
  sealed[7]![20]! ^= 1;
  const opened = await Promise.allSettled(sealed.map((one, n) => sealer.open({ ...PLACE, version: n }, one)));
  expect(opened.map((one) => one.status === "fulfilled" ? textOf(one.value) : "unreadable"))
    .toEqual(sealed.map((_, n) => n === 7 ? "unreadable" : `text ${n}`));
});

test(
  "uses a distinct random IV for each of 100,000 values and counts the uses of the key",
  { tags: ["K04"] },
  async () => {
    const counted = createSealer(key).forPurpose("count");
    const ivs = new Set<string>();
    const bitCounts = new Array<number>(96).fill(0);
    const note = (sealed: Uint8Array) => {
      ivs.add(sealed.subarray(1, 13).toHex());
      for (let bit = 0; bit < 96; bit++) bitCounts[bit]! += (sealed[1 + (bit >> 3)]! >> (bit % 8)) & 1;
    };
    for (let n = 0; n < 98_000; n++) note(counted.sealNow(PLACE, "x"));
    for (const sealed of await Promise.all(Array.from({ length: 2000 }, () => counted.seal(PLACE, "x")))) note(sealed);
    expect(ivs.size).toBe(100_000);
    expect(counted.sealCount).toBe(100_000);
    expect(counted.sealCount).toBeLessThan(2 ** 32 / 1000);
    // Each of the 96 bits is set about every second time: 1,000 is over six standard deviations.
    for (const count of bitCounts) expect(Math.abs(count - 50_000)).toBeLessThan(1000);
  },
);

test("never repeats an IV across Workers and processes with the same key", { tags: ["K04"] }, async () => {
  const count = 2000;
  const fromWorker = () => {
    const worker = new Worker(new URL("../../helpers/processes/storage_iv_child.ts", import.meta.url), {
      type: "module",
    });
    return new Promise<string[]>((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => reject(new Error(event.message));
      worker.postMessage(count);
    }).finally(() => worker.terminate());
  };
  const fromProcess = () => runChild("storage_iv_child.ts", [String(count)]);
  const ivs = (await Promise.all([fromWorker(), fromWorker(), fromProcess(), fromProcess()])).flat();
  expect(ivs).toHaveLength(4 * count);
  expect(new Set(ivs).size).toBe(4 * count);
});

test("refuses unpaired surrogates instead of replacing them", async () => {
  expect(() => sealer.sealNow(PLACE, "a\ud83e")).toThrow("the text has an unpaired surrogate");
  await expect(sealer.seal(PLACE, "a\ud83e")).rejects.toMatchObject({ code: "internal" });
  expect(JSON.parse(textOf(sealer.openNow(PLACE, sealer.sealNow(PLACE, JSON.stringify("a\ud83e")))))).toBe("a\ud83e");
});

test("refuses a storage key of another length", () => {
  expect(() => createSealer(new Uint8Array(31))).toThrow("it has 31 bytes instead of 32");
});

test("creates an opener that only opens values of its purpose, and wipes its key", async () => {
  const copy = sealer.copyKey();
  const opener = await createOpener(copy);
  expect(copy).toEqual(new Uint8Array(32));
  expect(textOf(await opener.open(PLACE, sealer.sealNow(PLACE, "tëxt")))).toBe("tëxt");
  const foreign = createSealer(key).forPurpose("connections").sealNow(PLACE, "tëxt");
  await expect(opener.open(PLACE, foreign)).rejects.toMatchObject(refusal);
  await expect(opener.open({ ...PLACE, version: 4 }, sealer.sealNow(PLACE, "x"))).rejects.toMatchObject(refusal);
  // The sealer's key isn't the copy.
  expect(textOf(sealer.openNow(PLACE, sealer.sealNow(PLACE, "still")))).toBe("still");
});

test.each([
  ["nothing", ""],
  ["ASCII with all its control characters", String.fromCharCode(...Array.from({ length: 128 }, (_, code) => code))],
  ["other letters, first, last and between", "éa", "aé", "a\u0080b"],
  ["beyond the basic plane", "a😀b"],
  ["half a surrogate pair, as the platform replaces it", "a\ud83db"],
  ["a text of three bytes per character around the limit of the buffer", "€".repeat(1_365), "€".repeat(1_366)],
  ["a long text", "x".repeat(5_000)],
  ["a long text with other letters", "ü".repeat(5_000)],
])("encodes %s like TextEncoder", (_, ...texts) => {
  for (const text of texts) expect(encodeUtf8(text)).toEqual(new TextEncoder().encode(text));
});

test("returns bytes that later calls don't change", () => {
  const first = encodeUtf8("first");
  encodeUtf8("other");
  expect(new TextDecoder().decode(first)).toBe("first");
});
