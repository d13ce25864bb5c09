/** Offers to attach the page of a link in the composer. */
import { asApiError } from "../../../api/client.ts";
import { Button } from "../../../components/Button.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";

/** Replaces the link in the text by a document. If it can't be added, the link comes back. */
export function LinkOffer({ chat, url }: { chat: OpenChat; url: string }) {
  const store = useStore();
  const attach = () => {
    const text = chat.draft.text.peek();
    chat.draft.type(text.slice(0, text.lastIndexOf(url)).trimEnd());
    chat.documents.addLink(url).catch((thrown) => {
      const now = chat.draft.text.peek();
      chat.draft.type(now === "" ? url : `${now}\n\n${url}`);
      store.toasts.show(asApiError(thrown).message, { isError: true });
    });
  };
  return (
    <div class="link-offer">
      <Button kind="quiet" icon="plus" onClick={attach}>{texts.documents.attachPage}</Button>
      <span class="muted">{new URL(url).host}</span>
    </div>
  );
}
