/** What this is and which version of it. */
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** The version the server reports. */
export function AboutPage() {
  const version = useStore().connections.health.value?.version;
  return (
    <section>
      <h2>{texts.settings.about}</h2>
      <p>{texts.about.text}</p>
      {version && <p class="muted">{texts.about.version} {version}</p>}
    </section>
  );
}
