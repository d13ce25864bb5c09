import { expect, test } from "vitest";
import { readNotices } from "../../../services/tailnet/local_api.ts";

function streamOf(...chunks: string[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return ReadableStream.from(chunks.map((chunk) => new TextEncoder().encode(chunk)));
}

test("split and joined lines are parsed one by one, and unknown fields are ignored", async () => {
  const notices = await Array.fromAsync(readNotices(streamOf(
    '{"State":2,"BrowseTo',
    'URL":"https://login.test/a/1"}\n{"ErrMessage":"no"}\n\n{"Health":{"Warnings":',
    '{"login-state":{"Text":"late"},"odd":null}}}\nnonsense\n{"New":[1]}\n',
  )));
  const nothing = { browseUrl: undefined, errorMessage: undefined, health: undefined };
  expect(notices).toEqual([
    { ...nothing, browseUrl: "https://login.test/a/1" },
    { ...nothing, errorMessage: "no" },
    { ...nothing, health: new Map([["login-state", "late"], ["odd", ""]]) },
    {},
    nothing,
  ]);
});

test("an endless line is rejected before it fills memory", async () => {
  const megabyte = "x".repeat(1024 * 1024);
  const endless = streamOf(...Array.from({ length: 6 }, () => megabyte));
  await expect(Array.fromAsync(readNotices(endless))).rejects.toThrow("without an end");
});
