/** What another program shared with the installed page; the service worker keeps it until it is taken here. */

/** Texts and files, for a composer. */
export interface SharedContent {
  text: string;
  files: File[];
}

/** The service worker's name for it. */
const SHARED = "parlor-shared";

/** Takes what was shared, once; undefined when there is nothing, as after a reload. */
export async function takeSharedContent(): Promise<SharedContent | undefined> {
  if (!("caches" in globalThis) || !await caches.has(SHARED)) return undefined;
  const cache = await caches.open(SHARED);
  const content: SharedContent = { text: "", files: [] };
  for (const request of await cache.keys()) {
    const answer = await cache.match(request);
    if (answer === undefined) continue;
    const name = answer.headers.get("x-name");
    if (name === null) content.text = await answer.text();
    else content.files.push(new File([await answer.blob()], decodeURIComponent(name), typeOf(answer)));
  }
  await caches.delete(SHARED);
  return content;
}

function typeOf(answer: Response): FilePropertyBag {
  return { type: answer.headers.get("content-type") ?? "" };
}
