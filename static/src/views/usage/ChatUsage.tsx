/** Usage of one chat: its replies, tokens, speed and cost. */
import { useMemo } from "preact/hooks";
import { usageApi } from "../../api/usage.ts";
import { ErrorNote } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { useResource } from "../hooks.tsx";
import { listFigures } from "./usage_figures.ts";

/** A section of the chat's options. */
export function ChatUsage({ id }: { id: string }) {
  const { api } = useStore();
  const calls = useMemo(() => usageApi(api.client), []);
  const { value, error, again } = useResource(() => calls.readChat(id), "reply_ended", "usage");
  const t = texts.usage;
  return (
    <section aria-labelledby="options-usage">
      <h3 id="options-usage">{t.title}</h3>
      {error && <ErrorNote title={t.failed} error={error} onRetry={again} />}
      {value?.models.length === 0 && <p class="hint">{t.noneInChat}</p>}
      {value && value.models.length > 0 && (
        <>
          <dl class="facts">
            {listFigures(value.total).map(([name, figure]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{figure}</dd>
              </div>
            ))}
          </dl>
          <p class="hint">{t.chatHint}</p>
        </>
      )}
    </section>
  );
}
