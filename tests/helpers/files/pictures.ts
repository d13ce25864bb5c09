/** Helpers to create and count attachments. */
import { Buffer } from "node:buffer";
import { makeRgbaPng } from "./png_files.ts";
import type { TestApp } from "../app/test_app.ts";

/** A small image that depends on the lowest 24 bits of the seed. */
export function picture(seed = 0, widthPx = 4): Uint8Array<ArrayBuffer> {
  return makeRgbaPng(
    widthPx,
    3,
    (x, y) => [seed & 255, (x * 40 + (seed >>> 8)) & 255, (y * 80 + (seed >>> 16)) & 255, 255],
  );
}

/** An incompressible image of about four bytes per pixel. */
export function noise(widthPx: number, heightPx: number): Uint8Array<ArrayBuffer> {
  return makeRgbaPng(widthPx, heightPx, () => [...crypto.getRandomValues(new Uint8Array(3)), 255]);
}

/** The image as a data URL. */
export function dataUrl(bytes: Uint8Array, type = "image/png"): string {
  return `data:${type};base64,${Buffer.from(bytes).toString("base64")}`;
}

/** A message's part that shows an image. */
export function picturePart(url: string, more: Record<string, unknown> = {}) {
  return { type: "image_url", image_url: { url, ...more } };
}

/** Stores an image over HTTP. */
export function putPicture(
  app: TestApp,
  name: string,
  bytes: Uint8Array<ArrayBuffer> = picture(),
  headers: Record<string, string> = {},
): Promise<Response> {
  return app.put(`/api/attachments/${name}`, bytes, { headers: { "Content-Type": "image/png", ...headers } });
}

/** Names of the files in the folder of attachments. */
export async function attachmentFiles(app: TestApp): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(`${app.dataDir}/attachments`))).map(({ name }) => name).sort();
}
