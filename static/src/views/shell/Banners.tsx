/** Banners above every screen. */
import { Button } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import { announceReload } from "../../state/app/browser_parts.ts";
import { type Store, useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Warns of a proxy that undermines access rules or wants a sign-in, and of a lost server. */
export function Banners() {
  const store = useStore();
  const shown = store.router.screen.value;
  const unsent = shown.name === "activity" ? 0 : store.outbox.entries.value
    .filter(({ kind, conversationId }) =>
      kind !== "draft" && !(shown.name === "chat" && shown.conversationId === conversationId)
    ).length;
  const hint = store.auth.value?.hint;
  const warning = hint === "untrusted_proxy"
    ? texts.banner.untrustedProxy
    : hint === "bare_proxy"
    ? texts.banner.bareProxy
    : undefined;
  const isSignedOut = store.isProxySignedOut.value;
  return (
    <>
      {warning && (
        <p class="banner danger" role="alert">
          <Icon name="warning" />
          {warning}
        </p>
      )}
      <div class="banner offline" role="status" hidden={!isSignedOut && store.feed.isLive.value}>
        {isSignedOut
          ? (
            <>
              {texts.banner.proxySignIn}
              <Button onClick={() => void signInToProxy(store)}>{texts.banner.toProxySignIn}</Button>
            </>
          )
          : texts.banner.offline}
      </div>
      {unsent > 0 && (
        <p class="banner offline" role="status">
          <a href="/activity">{texts.unsent.count(unsent)}</a>
        </p>
      )}
    </>
  );
}

/** Loads the page again, which the proxy answers with its sign-in. What waits for the server stays in this browser. */
async function signInToProxy(store: Store): Promise<void> {
  await store.chat.peek()?.draft.save().catch(() => {});
  await announceReload(globalThis.window);
  globalThis.location.reload();
}
