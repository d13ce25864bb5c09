/** Banners above every screen. */
import { Icon } from "../../components/Icon.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Warns of a proxy that undermines access rules, and of a lost server. */
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
  return (
    <>
      {warning && (
        <p class="banner danger" role="alert">
          <Icon name="warning" />
          {warning}
        </p>
      )}
      <p class="banner offline" role="status" hidden={store.feed.isLive.value}>{texts.banner.offline}</p>
      {unsent > 0 && (
        <p class="banner offline" role="status">
          <a href="/activity">{texts.unsent.count(unsent)}</a>
        </p>
      )}
    </>
  );
}
