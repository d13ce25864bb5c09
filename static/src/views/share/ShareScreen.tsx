/** Opened by another program's share menu: what was shared goes into the composer of a new chat, and waits there. */
import { useEffect } from "preact/hooks";
import { takeSharedContent } from "../../state/app/shared_content.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { takeFiles } from "../chat/composer/add_files.ts";

/** Passes through to the new chat. */
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
      await takeFiles(shared?.files ?? [], chat, chat.draft.text.peek().length, (problem) => {
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
