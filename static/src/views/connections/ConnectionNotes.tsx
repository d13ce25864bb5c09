/** What a connection's server needs attention for: settings it refused, memory, a better way to talk to it. */
import { useState } from "preact/hooks";
import type { Connection, ConnectionInput } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { formatDateTime } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { stripVersion } from "./connection_fields.ts";

/** Nothing for most connections. */
export function ConnectionNotes({ connection }: { connection: Connection }) {
  const t = texts.connectionCard;
  const { notice, refused } = connection;
  const isOllama = connection.suggested_kind === "ollama" ||
    (connection.kind === "openai" && connection.server.detected === "ollama" && !connection.server.override);
  return (
    <>
      {notice && <Notice tone="warning">{getNoticeText(notice)}</Notice>}
      {isOllama && (
        <Notice
          tone="info"
          actions={
            <SaveButton
              connection={connection}
              label={t.switchToOllama}
              changes={{ kind: "ollama", base_url: stripVersion(connection.base_url) }}
              done={t.switched(connection.name)}
            />
          }
        >
          {t.suggestOllama}
        </Notice>
      )}
      {refused.length > 0 && <RefusedFields connection={connection} />}
    </>
  );
}

function getNoticeText({ code, message }: { code: string; message: string }): string {
  const { notices } = texts.connectionCard;
  return Object.hasOwn(notices, code) ? notices[code as keyof typeof notices] : message;
}

/** By model. Saving the connection forgets them. */
function RefusedFields({ connection }: { connection: Connection }) {
  const t = texts.connectionCard;
  const { refused } = connection;
  const models = [...new Set(refused.map(({ model }) => model))];
  return (
    <details class="refused-fields">
      <summary>{t.refused(refused.length)}</summary>
      <p class="hint">{t.refusedHint}</p>
      {models.map((model) => (
        <section key={model}>
          <h4>{model}</h4>
          <ul>
            {refused.filter((each) => each.model === model).map(({ field, sent_as, status, reason, until }) => (
              <li key={field}>
                <code>{sent_as === undefined ? field : `${field} → ${sent_as}`}</code> ({status}): {reason}{" "}
                <span class="muted">{t.refusedUntil(formatDateTime(until))}</span>
              </li>
            ))}
          </ul>
        </section>
      ))}
      <div class="actions-row">
        <SaveButton connection={connection} label={t.tryAgain} changes={{}} done={t.forgotten} />
      </div>
    </details>
  );
}

/** Saves a change of the connection and says what it did. */
function SaveButton(
  { connection, label, changes, done }: {
    connection: Connection;
    label: string;
    changes: Partial<ConnectionInput>;
    done: string;
  },
) {
  const store = useStore();
  const [isBusy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      await store.connections.save({ id: connection.id, ...changes });
      store.toasts.show(done);
    } catch (thrown) {
      store.report(thrown);
    }
    setBusy(false);
  };
  return <Button isBusy={isBusy} label={`${label}: ${connection.name}`} onClick={save}>{label}</Button>;
}
