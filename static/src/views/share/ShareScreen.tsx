/** The target of the system's share menu: shared content becomes the draft of a new chat, a link a question about its page. */
import { useEffect, useState } from "preact/hooks";
import { asApiError } from "../../api/client.ts";
import { Button } from "../../components/Button.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { addFiles } from "../chat/composer/add_files.ts";

/** Asks what to do with a shared link; everything else opens the new chat at once. */
export function ShareScreen() {
  const store = useStore();
  const [shared, setShared] = useState<SharedContent & { link: string }>();
  const fail = (thrown: unknown) => {
    store.report(thrown);
    store.router.go("/new", { replace: true });
  };
  const openChat = async (content: SharedContent) => {
    const chat = store.showNewChat();
    addText(chat.draft, content.text);
    store.router.go("/new", { replace: true });
    await addFiles(content.files, chat, chat.draft.text.peek().length, (problem) => {
      store.toasts.show(problem, { isError: true });
    });
  };
  useEffect(() => {
    readSharedContent().then(async (content) => {
      const link = findOnlyLink(content);
      if (link !== undefined) return setShared({ ...content, link });
      await forgetSharedContent();
      await openChat(content);
    }).catch(fail);
  }, []);
  if (shared === undefined) {
    return (
      <main id="main" tabIndex={-1}>
        <p class="chat-loading" role="status">{texts.loading}</p>
      </main>
    );
  }
  const { link, text, title } = shared;
  // The page's title becomes the document's name.
  const rest = text.replace(title, "").replace(link, "").trim();
  const ask = () => {
    const chat = store.showNewChat();
    addText(chat.draft, rest);
    store.router.go("/new", { replace: true });
    focusComposer();
    chat.documents.addLink(link).catch((thrown) => {
      addText(chat.draft, link);
      store.toasts.show(asApiError(thrown).message, { isError: true });
    });
    forgetSharedContent().catch(fail);
  };
  return (
    <main id="main" class="page share-page" tabIndex={-1}>
      <div class="column share-offer">
        <h1>{title || new URL(link).host}</h1>
        <p class="muted share-link">{link}</p>
        {rest !== "" && <p>{rest}</p>}
        <div class="share-actions">
          <Button kind="primary" icon="chat" onClick={ask}>{texts.documents.askAboutPage}</Button>
          <Button onClick={() => void forgetSharedContent().then(() => openChat(shared)).catch(fail)}>
            {texts.documents.shareAsText}
          </Button>
        </div>
      </div>
    </main>
  );
}

/** Shared texts and files. */
interface SharedContent {
  /** Title, text and link, as far as they were shared. */
  text: string;
  /** Empty without one. */
  title: string;
  files: File[];
}

/** The service worker's cache name. */
const SHARED = "parlor-shared";
/** How long to wait for the composer, in milliseconds. */
const COMPOSER_WAIT_MS = 15_000;

/** Returns the link of a share that has no files and no other link. */
function findOnlyLink({ text, files }: SharedContent): string | undefined {
  const links = new Set((text.match(/https?:\/\/[^\s<>"]+/gi) ?? []).map((found) => found.replace(/[.,;:!?]+$/, "")));
  const [link] = links;
  return files.length === 0 && links.size === 1 && URL.canParse(link!) ? link : undefined;
}

function addText(draft: { text: { peek(): string }; type(text: string): void }, text: string): void {
  const typed = draft.text.peek();
  if (text !== "") draft.type(typed === "" ? text : `${typed}\n\n${text}`);
}

/** Focuses the composer when it appears. The press on the button lets phones open their keyboard. */
function focusComposer(): void {
  const focus = () => {
    const field = document.querySelector<HTMLTextAreaElement>(".composer textarea");
    field?.focus();
    return field !== null && document.activeElement === field;
  };
  const observer = new MutationObserver(() => focus() && observer.disconnect());
  observer.observe(document.body, { childList: true, subtree: true });
  setTimeout(() => observer.disconnect(), COMPOSER_WAIT_MS);
}

/** Reads the shared content; empty if there is none, as after a reload. */
async function readSharedContent(): Promise<SharedContent> {
  const content: SharedContent = { text: "", title: "", files: [] };
  if (!("caches" in globalThis) || !await caches.has(SHARED)) return content;
  const cache = await caches.open(SHARED);
  for (const request of await cache.keys()) {
    const answer = await cache.match(request);
    if (answer === undefined) continue;
    const name = answer.headers.get("x-name");
    if (name === null) {
      content.title = decodeURIComponent(answer.headers.get("x-title") ?? "").trim();
      content.text = await answer.text();
    } else content.files.push(new File([await answer.blob()], decodeURIComponent(name), detectType(answer)));
  }
  return content;
}

async function forgetSharedContent(): Promise<void> {
  if ("caches" in globalThis) await caches.delete(SHARED);
}

function detectType(answer: Response): FilePropertyBag {
  return { type: answer.headers.get("content-type") ?? "" };
}
