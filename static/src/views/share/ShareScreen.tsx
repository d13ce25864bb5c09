/** The target of the system's share menu: shared content becomes the draft of a new chat. */
import { useEffect } from "preact/hooks";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { addFiles } from "../chat/composer/add_files.ts";

/** Redirects to the new chat. */
export function ShareScreen() {
  const store = useStore();
  useEffect(() => {
    const take = async () => {
      const shared = await takeSharedContent();
      const chat = store.showNewChat();
      if (shared !== undefined && shared.text !== "") {
        const typed = chat.draft.text.peek();
        chat.draft.type(typed === "" ? shared.text : `${typed}\n\n${shared.text}`);
      }
      store.router.go("/new", { replace: true });
      await addFiles(shared?.files ?? [], chat, chat.draft.text.peek().length, (problem) => {
        store.toasts.show(problem, { isError: true });
      });
    };
    take().catch((thrown) => {
      store.report(thrown);
      store.router.go("/new", { replace: true });
    });
  }, []);
  return (
    <main id="main" tabIndex={-1}>
      <p class="chat-loading" role="status">{texts.loading}</p>
    </main>
  );
}

/** Shared texts and files. */
interface SharedContent {
  text: string;
  files: File[];
}

/** The service worker's cache name. */
const SHARED = "parlor-shared";

/** Takes the shared content once; undefined if there is none, as after a reload. */
async function takeSharedContent(): Promise<SharedContent | undefined> {
  if (!("caches" in globalThis) || !await caches.has(SHARED)) return undefined;
  const cache = await caches.open(SHARED);
  const content: SharedContent = { text: "", files: [] };
  for (const request of await cache.keys()) {
    const answer = await cache.match(request);
    if (answer === undefined) continue;
    const name = answer.headers.get("x-name");
    if (name === null) content.text = await answer.text();
    else content.files.push(new File([await answer.blob()], decodeURIComponent(name), detectType(answer)));
  }
  await caches.delete(SHARED);
  return content;
}

function detectType(answer: Response): FilePropertyBag {
  return { type: answer.headers.get("content-type") ?? "" };
}
