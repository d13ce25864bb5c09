/** The key of a connection: it goes in and never comes back. */
import { useState } from "preact/hooks";
import type { Connection } from "../../api/types.ts";
import { Button, IconButton } from "../../components/Button.tsx";
import { Field } from "../../components/Field.tsx";
import { Notice } from "../../components/Notice.tsx";
import { texts } from "../../texts/texts.ts";
import { type ConnectionFields, isKeyExposed, isKeyLeftBehind } from "./connection_fields.ts";

/** The field with what there is to know: a stored key, one that stays behind, one that others on the way could read. */
export function KeyField(
  { connection, fields, needsKey, onInput, onClear }: {
    connection: Connection | undefined;
    fields: ConnectionFields;
    needsKey: boolean;
    onInput: (key: string) => void;
    onClear: () => void;
  },
) {
  const t = texts.form;
  const [isShown, setShown] = useState(false);
  const isLeftBehind = isKeyLeftBehind(fields, connection);
  const hasStored = connection?.has_key === true && !isLeftBehind;
  return (
    <>
      <Field id="key" label={t.key} hint={hasStored ? t.keySaved : needsKey ? t.keyNeeded : t.keyHint}>
        {(describedBy) => (
          <div class="with-button">
            <input
              id="key"
              // The types know one set of attributes per kind; both of ours share these.
              type={(isShown ? "text" : "password") as "password"}
              class="mono"
              autocomplete="new-password"
              spellcheck={false}
              aria-describedby={describedBy}
              value={fields.apiKey}
              onInput={(event) => onInput(event.currentTarget.value)}
            />
            {fields.apiKey !== "" && (
              <IconButton
                icon={isShown ? "hide" : "show"}
                label={isShown ? t.keyHide : t.keyShow}
                onClick={() => setShown(!isShown)}
              />
            )}
          </div>
        )}
      </Field>
      {isLeftBehind && <Notice tone="warning">{t.keyMoved}</Notice>}
      {isKeyExposed(fields, connection) && <Notice tone="warning">{t.keyExposed}</Notice>}
      {connection?.has_key && (
        <div>
          <Button onClick={onClear}>{t.keyClear}</Button>
        </div>
      )}
    </>
  );
}
