/** A notice above every screen: a newer version is available. It's shown once per version. */
import { getReleases } from "../../api/server.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { useResource } from "../hooks.tsx";

/** Page with the changes of all versions. */
export const CHANGELOG_PATH = "/settings/about/changelog";

/** The notice. Nothing while there is no newer version, and after it was dismissed. */
export function UpdateNotice() {
  const store = useStore();
  const { api, preferences, router } = store;
  const { value } = useResource(() => getReleases(api.client), "release_check");
  const newer = value?.newer;
  const isDismissed = preferences.settings.value?.dismissed_release === newer?.version;
  if (!newer || isDismissed || router.path.value === CHANGELOG_PATH) return null;
  const t = texts.releases;
  const dismiss = () =>
    void preferences.change({ dismissed_release: newer.version }).catch((thrown) => store.report(thrown));
  return (
    <div class="memory-question" role="status">
      <p>{t.available(newer.version)}</p>
      <div class="actions-row">
        <LinkButton href={CHANGELOG_PATH}>{t.whatsNew}</LinkButton>
        <Button kind="quiet" onClick={dismiss}>{t.dismiss}</Button>
      </div>
    </div>
  );
}
