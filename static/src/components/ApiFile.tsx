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

/** Returns a URL that elements can load. Undefined while the page fetches it; the URL itself if that fails. */
export function useFileUrl(url: string): string | undefined {
  const store = useStore();
  const isFetched = needsFetch(url);
  const [fetched, setFetched] = useState<{ of: string; url: string }>();
  useEffect(() => {
    if (!isFetched) return;
    const abort = new AbortController();
    let objectUrl: string | undefined;
    const read = async () => {
      const response = await store.api.client.send("GET", url, { signal: abort.signal });
      const file = await response.blob();
      if (abort.signal.aborted) return;
      objectUrl = URL.createObjectURL(file);
      setFetched({ of: url, url: objectUrl });
    };
    // The element fails as well then, and shows it in its own way.
    read().catch(() => abort.signal.aborted || setFetched({ of: url, url }));
    return () => {
      abort.abort();
      if (objectUrl !== undefined) URL.revokeObjectURL(objectUrl);
    };
  }, [url, isFetched]);
  if (!isFetched) return url;
  return fetched?.of === url ? fetched.url : undefined;
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
  body: { kind: "conversations" | "characters"; ids: readonly string[]; format: string },
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
      // Wrongly encoded: the plain name is left.
    }
  }
  return /filename="([^"]*)"/i.exec(disposition ?? "")?.[1];
}
