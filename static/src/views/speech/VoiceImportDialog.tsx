/** Imports a voice sample from a URL. */
import { useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { useStore } from "../../state/store.ts";
import type { VoiceLibrary } from "../../state/speech/voice_library.ts";
import { texts } from "../../texts/texts.ts";

/** The form; the import itself continues on the page. */
export function VoiceImportDialog({ library, onClose }: { library: VoiceLibrary; onClose: () => void }) {
  const store = useStore();
  const t = texts.voice.library;
  const [url, setUrl] = useState("");
  const [name, setName] = useState("");
  const [start, setStart] = useState("");
  const [end, setEnd] = useState("");
  const [isChecked, setChecked] = useState(false);
  const [startS, endS] = [parseSeconds(start), parseSeconds(end)];
  const isUrlBad = !/^https?:\/\/\S+$/i.test(url.trim());
  const isPieceBad = startS === null || endS === null || (endS !== undefined && endS <= (startS ?? 0));
  const submit = (event: Event) => {
    event.preventDefault();
    setChecked(true);
    if (isUrlBad || isPieceBad || name.trim() === "") return;
    const request = { url: url.trim(), name: name.trim(), start_s: startS, end_s: endS };
    void library.import(request).then((isDone) => isDone && store.toasts.show(t.fetched(request.name)));
    onClose();
  };
  return (
    <Dialog
      title={t.fetchTitle}
      onClose={onClose}
      actions={<Button kind="primary" type="submit" form="voice-import">{t.fetchStart}</Button>}
    >
      <form id="voice-import" class="form" noValidate onSubmit={submit}>
        <TextField
          type="url"
          inputMode="url"
          label={t.url}
          hint={t.urlHint}
          error={isChecked && isUrlBad ? t.urlBad : undefined}
          hasFocus
          value={url}
          onInput={setUrl}
        />
        <TextField
          label={t.name}
          maxLength={200}
          error={isChecked && name.trim() === "" ? t.nameMissing : undefined}
          value={name}
          onInput={setName}
        />
        <div class="options-pair">
          <TextField label={t.from} placeholder="0:00" value={start} onInput={setStart} />
          <TextField label={t.to} placeholder="0:15" value={end} onInput={setEnd} />
        </div>
        <p class="hint">{t.pieceHint}</p>
        {isChecked && isPieceBad && <p class="field-error" role="alert">{t.pieceBad}</p>}
      </form>
    </Dialog>
  );
}

/** Parses `75`, `1:15` or `1:01:15`; undefined for empty text, null for an invalid time. */
function parseSeconds(text: string): number | undefined | null {
  if (text.trim() === "") return undefined;
  if (!/^\d{1,5}(?::[0-5]?\d){0,2}(?:\.\d+)?$/.test(text.trim())) return null;
  return text.trim().split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
}
