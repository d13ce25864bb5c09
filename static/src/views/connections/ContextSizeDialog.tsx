/** Asks for the context size of a model whose server doesn't tell it. It's remembered with the connection. */
import { useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { CancelButton, Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { suggestContextSize } from "../../state/connections/known_context_sizes.ts";
import { useStore } from "../../state/store.ts";
import { formatNumber } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { useFormRequests } from "../hooks.tsx";

/** A model of a connection. */
export interface ModelOfConnection {
  connectionId: string;
  model: string;
}

const MAX_TOKENS = 100_000_000;

/** Starts with what is stored, or with what is known of the model's name. */
export function ContextSizeDialog({ connectionId, model, onClose }: ModelOfConnection & { onClose: () => void }) {
  const { connections } = useStore();
  const stored = connections.items.peek().find(({ id }) => id === connectionId)?.context_sizes?.[model];
  const suggested = suggestContextSize(model);
  const [written, setWritten] = useState(() => String(stored ?? suggested ?? ""));
  const { busy, failure, run } = useFormRequests<"save">();
  const draft = useFormDraft(`context_size:${connectionId}:${model}`);
  const t = texts.contextSize;
  // As people write numbers: "32 768", "32,768", "32.768".
  const digits = written.replaceAll(/[\s.,'’]/g, "");
  const tokens = /^\d{1,9}$/.test(digits) ? Number(digits) : 0;
  const isValid = tokens > 0 && tokens <= MAX_TOKENS;
  const save = (size: number | null) =>
    run("save", async () => {
      await connections.save({ id: connectionId, context_sizes: { [model]: size } });
      draft.clear();
      onClose();
    });
  return (
    <Dialog
      title={t.title}
      onClose={onClose}
      actions={
        <>
          {stored !== undefined && <Button kind="quiet" onClick={() => void save(null)}>{t.forget}</Button>}
          <CancelButton draft={draft} onCancel={onClose} />
          <Button kind="primary" isDisabled={!isValid} isBusy={busy !== undefined} onClick={() => void save(tokens)}>
            {texts.save}
          </Button>
        </>
      }
    >
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (isValid && busy === undefined) void save(tokens);
        }}
      >
        <p>{t.intro(model)}</p>
        <Drafted draft={draft}>
          <TextField
            label={t.label}
            hint={suggested === undefined ? t.hint : t.suggested(formatNumber(suggested))}
            error={written.trim() !== "" && !isValid ? t.bad : undefined}
            value={written}
            inputMode="numeric"
            onInput={setWritten}
            hasFocus
          />
        </Drafted>
      </form>
      {failure && <ErrorNote title={t.failed} error={failure.error} />}
    </Dialog>
  );
}
