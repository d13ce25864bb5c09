import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ApiClient } from "../../../../static/src/api/client.ts";
import { FileUrls } from "../../../../static/src/state/app/file_urls.ts";

/** Sizes of the files by path; others are missing. */
const SIZES: Record<string, number> = { "/a": 40, "/b": 40, "/c": 40, "/large": 400 };

let asked: string[];
let aborted: string[];
let revoked: string[];
beforeEach(() => {
  [asked, aborted, revoked] = [[], [], []];
  vi.spyOn(URL, "createObjectURL").mockImplementation((blob) => `blob:${asked.at(-1)}#${(blob as Blob).size}`);
  vi.spyOn(URL, "revokeObjectURL").mockImplementation((url) => void revoked.push(url));
});
afterEach(() => vi.restoreAllMocks());

function openFiles(maxUnusedBytes: number): FileUrls {
  const send: ApiClient["send"] = (_, path, options) => {
    asked.push(path);
    options?.signal?.addEventListener("abort", () => aborted.push(path));
    const size = SIZES[path];
    return size === undefined ? Promise.reject(new Error("missing")) : Promise.resolve(new Response("x".repeat(size)));
  };
  return new FileUrls({ send } as ApiClient, maxUnusedBytes);
}

/** Loads a file and releases it. */
async function show(files: FileUrls, path: string): Promise<string | undefined> {
  const { url, leave } = files.use(path, path);
  const found = await url;
  leave();
  return found;
}

test("loads a file once for all that use it, and finds it afterwards", async () => {
  const files = openFiles(100);
  const [first, second] = [files.use("/a", "/a"), files.use("/a", "/a")];
  expect(files.find("/a")).toBeUndefined();
  expect([await first.url, await second.url]).toEqual(["blob:/a#40", "blob:/a#40"]);
  first.leave();
  second.leave();
  expect(files.find("/a")).toBe("blob:/a#40");
  expect(await show(files, "/a")).toBe("blob:/a#40");
  expect(asked).toEqual(["/a"]);
});

test("revokes the files that were released first, and none that is in use", async () => {
  const files = openFiles(100);
  const { url, leave } = files.use("/large", "/large");
  await url;
  for (const path of ["/a", "/b", "/a", "/c"]) await show(files, path);
  expect(revoked).toEqual(["blob:/b#40"]);
  expect(["/a", "/b", "/c", "/large"].filter((path) => files.find(path) !== undefined)).toEqual(["/a", "/c", "/large"]);
  leave();
  expect(revoked).toEqual(["blob:/b#40", "blob:/a#40", "blob:/c#40", "blob:/large#400"]);
});

test("cancels a request that nothing waits for any more", async () => {
  const files = openFiles(100);
  const [first, second] = [files.use("/a", "/a"), files.use("/a", "/a")];
  first.leave();
  expect(aborted).toEqual([]);
  second.leave();
  expect(aborted).toEqual(["/a"]);
  expect(await first.url).toBeUndefined();
  expect(await show(files, "/a")).toBe("blob:/a#40");
  expect(asked).toEqual(["/a", "/a"]);
});

test("asks again for a file that couldn't be loaded", async () => {
  const files = openFiles(100);
  expect(await show(files, "/late")).toBeUndefined();
  SIZES["/late"] = 1;
  expect(await show(files, "/late")).toBe("blob:/late#1");
  delete SIZES["/late"];
});
