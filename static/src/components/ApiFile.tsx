/**
 * Files of the server in elements and links, which send the session cookie but no token. On a device that signs in with
 * a token the page fetches them.
 *
 * ApiImage: `src` (a path of the server, or any other URL) and the attributes of an image. `useFileUrl` serves other
 * elements, `downloadFile` links; `downloadAll` and `saveFile` save what a link can't name.
 */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { findDeviceToken, findStorage } from "../state/app/device.ts";
import { type Store, useStore } from "../state/store.ts";

/** Revoking the URL of a download earlier would end it in some browsers. In milliseconds. */
const DOWNLOAD_MS = 60_000;

/** Returns whether the page has to fetch a URL that elements and links would load without the token. */
export function needsFetch(url: string): boolean {
  return url.startsWith("/api/") && findDeviceToken(findStorage(globalThis.window)) !== undefined;
}

/**
 * Loads a file of the server while the element that shows it is there.
 *
 * @param path Undefined to load nothing.
 * @param version Distinguishes files that the same path had over time.
 * @returns The last file that was loaded, with the path it is of; its `url` is undefined if it couldn't be.
 */
export function useLoadedFile(
  path: string | undefined,
  version = "",
): { path: string; url: string | undefined } | undefined {
  const { files } = useStore();
  const [loaded, setLoaded] = useState<{ path: string; url: string | undefined }>();
  const key = `${path} ${version}`;
  useEffect(() => {
    if (path === undefined) return;
    let isWanted = true;
    const { url, leave } = files.use(key, path);
    void url.then((found) => isWanted && setLoaded({ path, url: found }));
    return () => {
      isWanted = false;
      leave();
    };
  }, [key]);
  if (path === undefined) return undefined;
  const url = files.find(key);
  return url === undefined ? loaded : { path, url };
}

/** Returns a URL that elements can load. Undefined while the page fetches it; the URL itself if that fails. */
export function useFileUrl(url: string): string | undefined {
  const isFetched = needsFetch(url);
  const loaded = useLoadedFile(isFetched ? url : undefined);
  if (!isFetched) return url;
  // The element then fails to load the URL as well and shows the failure.
  return loaded?.path === url ? loaded.url ?? url : undefined;
}

/** An image. */
export function ApiImage({ src, ...attributes }: JSX.IntrinsicElements["img"] & { src: string }) {
  return <img {...attributes} src={useFileUrl(src)} />;
}

/** Has the browser save a file. */
export function saveFile(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), DOWNLOAD_MS);
}

/** Downloads several conversations or characters as one ZIP file. Shows a failure. */
export async function downloadAll(
  store: Store,
  body: { kind: "conversations" | "characters"; ids: readonly string[]; format: string; image_metadata?: "keep" },
): Promise<void> {
  try {
    const response = await store.api.client.send("POST", "/api/export", { body });
    saveFile(await response.blob(), `parlor-${new Date().toISOString().slice(0, 10)}.zip`);
  } catch (thrown) {
    store.report(thrown);
  }
}

/**
 * Fetches a file and has the browser save it.
 *
 * @param fileName If undefined, the one that the server gives.
 */
export async function downloadFile(store: Store, path: string, fileName?: string): Promise<void> {
  try {
    const response = await store.api.client.send("GET", path);
    saveFile(await response.blob(), fileName ?? findFileName(response.headers.get("content-disposition")) ?? "");
  } catch (thrown) {
    store.report(thrown);
  }
}

/** Reads the name of a download: `filename*` (RFC 8187), else `filename`. */
function findFileName(disposition: string | null): string | undefined {
  const encoded = /filename\*=UTF-8''([^;]+)/i.exec(disposition ?? "")?.[1];
  if (encoded !== undefined) {
    try {
      return decodeURIComponent(encoded);
    } catch {
      // Invalid encoding: the plain name is used.
    }
  }
  return /filename="([^"]*)"/i.exec(disposition ?? "")?.[1];
}
