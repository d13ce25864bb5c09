/** The target of the system's share menu: shows what waits on this device. It's sent only after a click. */
import { asApiError } from "../../api/client.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { VisibleText } from "../../components/content/VisibleText.tsx";
import { useTitle } from "../../components/hooks.ts";
import { List, ListRow } from "../../components/lists/List.tsx";
import { EmptyState, Notice } from "../../components/Notice.tsx";
import { deleteShare, readSharedFiles, type Share } from "../../state/app/shared_content.ts";
import { useStore } from "../../state/store.ts";
import { formatTime } from "../../texts/format.ts";
import { formatSize } from "../../texts/quantities.ts";
import { texts } from "../../texts/texts.ts";
import { toVisibleText } from "../../texts/visible_text.ts";
import { addFiles } from "../chat/composer/add_files.ts";
import { useAction } from "../hooks.tsx";
import { useShares } from "./use_shares.ts";
import { PageHeader } from "../shell/PageHeader.tsx";

/** The shares that wait, newest first. */
export function ShareScreen() {
  const store = useStore();
  const t = texts.share;
  const shares = useShares();
  useTitle(`${t.title} · ${texts.product}`);
  const problem = new URLSearchParams(store.router.query.value).get("problem");
  return (
    <main id="main" class="page" tabIndex={-1}>
      <PageHeader title={t.title} />
      <div class="page-scroll">
        <div class="column page-sections">
          {problem !== null && Object.hasOwn(t.problems, problem) && (
            <Notice tone="warning">{t.problems[problem as keyof typeof t.problems]}</Notice>
          )}
          {shares === undefined && <p class="chat-loading" role="status">{texts.loading}</p>}
          {shares?.length === 0 && (
            <EmptyState title={t.noneTitle} text={t.noneText}>
              <LinkButton href="/new" kind="primary">{texts.nav.newChat}</LinkButton>
            </EmptyState>
          )}
          {shares !== undefined && shares.length > 0 && <p class="muted">{t.intro}</p>}
          {shares?.map((share) => <ShareCard key={share.id} share={share} />)}
        </div>
      </div>
    </main>
  );
}

function ShareCard({ share }: { share: Share }) {
  const store = useStore();
  const t = texts.share;
  const { text, url, link, rest } = readTexts(share);
  const title = share.title || (link && new URL(link).host) || t.untitled;
  const openChat = (draft: string) => {
    const chat = store.showNewChat();
    addText(chat.draft, draft);
    store.router.go("/new");
    return chat;
  };
  const add = useAction(async () => {
    const files = await readSharedFiles(share);
    const chat = openChat([share.title, text, url].filter((part) => part !== "").join("\n\n"));
    let isComplete = true;
    await addFiles(files, chat, chat.draft.text.peek().length, (problem) => {
      isComplete = false;
      store.toasts.show(problem, { isError: true });
    });
    // What couldn't be added still waits.
    if (isComplete) await deleteShare(share.id);
  });
  const ask = () => {
    const chat = openChat(rest);
    focusComposer();
    chat.documents.addLink(link!).catch((thrown) => {
      addText(chat.draft, link!);
      store.toasts.show(asApiError(thrown).message, { isError: true });
    });
    deleteShare(share.id).catch(store.report.bind(store));
  };
  const remove = useAction(() => deleteShare(share.id));
  const failure = add.failure ?? remove.failure;
  return (
    <article class="share-card" aria-label={toVisibleText(title)}>
      <div>
        <h2>
          <VisibleText text={title} />
        </h2>
        <p class="muted">{t.received(formatTime(new Date(share.time).toISOString(), new Date()))}</p>
      </div>
      {link !== undefined && (
        <p class="share-link">
          <VisibleText text={link} />
        </p>
      )}
      {(link === undefined ? [text, url] : [rest]).filter((part) => part !== "").map((part) => (
        <p key={part} class="share-text">
          <VisibleText text={part} />
        </p>
      ))}
      {share.files.length > 0 && (
        <List label={t.files}>
          {share.files.map(({ name, sizeBytes }, n) => (
            <ListRow key={n} title={<VisibleText text={name} />} text={formatSize(sizeBytes)} />
          ))}
        </List>
      )}
      {failure && <Notice tone="danger">{failure}</Notice>}
      <div class="actions-row">
        {link !== undefined && <Button kind="primary" icon="chat" onClick={ask}>{texts.documents.askAboutPage}</Button>}
        <Button kind={link === undefined ? "primary" : undefined} isBusy={add.isBusy} onClick={add.run}>
          {texts.documents.shareAsText}
        </Button>
        <Button kind="quiet" isBusy={remove.isBusy} label={t.deleteOf(toVisibleText(title))} onClick={remove.run}>
          {t.delete}
        </Button>
      </div>
    </article>
  );
}

/** Texts of a share without repetitions: programs put the link into any of the fields. */
function readTexts({ title, text: shared, url: sharedUrl, files }: Share): {
  text: string;
  url: string;
  /** The only link of a share without files. */
  link: string | undefined;
  /** What was shared besides the title and the link. */
  rest: string;
} {
  const text = shared === title ? "" : shared;
  const url = sharedUrl === title || text.includes(sharedUrl) ? "" : sharedUrl;
  const links = new Set(
    (`${title}\n${text}\n${url}`.match(/https?:\/\/[^\s<>"]+/gi) ?? []).map((found) => found.replace(/[.,;:!?]+$/, "")),
  );
  const [first] = links;
  const link = files.length === 0 && links.size === 1 && URL.canParse(first!) ? new URL(first!).href : undefined;
  // The page's title becomes the document's name.
  const rest = link === undefined ? "" : text.replace(title, "").replace(first!, "").trim();
  return { text, url, link, rest };
}

function addText(draft: { text: { peek(): string }; type(text: string): void }, text: string): void {
  const typed = draft.text.peek();
  if (text !== "") draft.type(typed === "" ? text : `${typed}\n\n${text}`);
}

/** How long to wait for the composer, in milliseconds. */
const COMPOSER_WAIT_MS = 15_000;

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
