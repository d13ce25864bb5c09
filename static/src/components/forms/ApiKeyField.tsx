/** The field of a server's API key, which is never read back. */
import { useState } from "preact/hooks";
import { Button, IconButton } from "../Button.tsx";
import { useDraftField } from "./draft_field.ts";
import { Field } from "./Field.tsx";
import { Notice } from "../Notice.tsx";
import { texts } from "../../texts/texts.ts";
import { type ApiKeyState, isKeyExposed, isKeyLeftBehind } from "./api_key_state.ts";

/** The field with notes: a stored key, a key that won't be sent, a key that others could read. */
export function ApiKeyField(
  { id = "key", keyState, hint, error, onInput, onClear }: {
    id?: string;
    keyState: ApiKeyState;
    /** Hint while no key is stored. */
    hint: string;
    error?: string;
    onInput: (key: string) => void;
    /** Removes the stored key; without it there is no such button. */
    onClear?: () => void;
  },
) {
  const t = texts.form;
  const [isShown, setShown] = useState(false);
  const { stored, typed } = keyState;
  const note = useDraftField(id, typed, onInput, "secret");
  const isLeftBehind = isKeyLeftBehind(keyState);
  const hasStored = stored?.has_key === true && !isLeftBehind;
  return (
    <>
      <Field id={id} label={t.key} hint={hasStored ? t.keySaved : hint} error={error}>
        {(describedBy) => (
          <div class="with-button">
            <input
              id={id}
              // The types have one set of attributes per element; both of ours share these.
              type={(isShown ? "text" : "password") as "password"}
              class="mono"
              autocomplete="new-password"
              spellcheck={false}
              aria-describedby={describedBy}
              aria-invalid={error !== undefined}
              value={typed}
              onInput={(event) => note(event.currentTarget.value)}
            />
            {typed !== "" && (
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
      {isKeyExposed(keyState) && <Notice tone="warning">{t.keyExposed}</Notice>}
      {stored?.has_key && onClear && (
        <div>
          <Button onClick={onClear}>{t.keyClear}</Button>
        </div>
      )}
    </>
  );
}
