/** One sample of the library. */
import type { VoiceSample } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { Button, IconButton } from "../../components/Button.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Menu } from "../../components/overlays/Menu.tsx";
import { useStore } from "../../state/store.ts";
import type { VoiceLibrary } from "../../state/speech/voice_library.ts";
import { formatClock, formatNumber } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { HistoryDialog } from "../documents/HistoryDialog.tsx";
import { bytes } from "../activity/format_progress.ts";

/** Name, details, actions. */
export function VoiceSampleRow({ library, sample }: { library: VoiceLibrary; sample: VoiceSample }) {
  const { speaking } = useStore();
  const [isRenaming, setRenaming] = useState(false);
  const [isHistoryOpen, setHistoryOpen] = useState(false);
  const t = texts.voice.library;
  const isHeard = speaking.now.value?.key === sample.id;
  const remove = () => library.remove(sample, { done: t.removed(sample.name), undo: texts.undo });
  return (
    <li class="card voice-sample">
      <IconButton
        icon={isHeard ? "stop" : "play"}
        label={isHeard ? t.stopHearing(sample.name) : t.hear(sample.name)}
        onClick={() => library.hear(sample)}
      />
      <div class="voice-sample-words">
        <h4>{sample.name}</h4>
        <p class="muted">{listFacts(sample)}</p>
        {sample.description !== "" && <p>{sample.description}</p>}
      </div>
      <Menu
        label={t.more(sample.name)}
        items={[
          { label: t.rename, icon: "pencil", onSelect: () => setRenaming(true) },
          { label: texts.history.open, icon: "history", onSelect: () => setHistoryOpen(true) },
          { label: t.remove, icon: "trash", isDanger: true, onSelect: remove },
        ]}
      />
      {isHistoryOpen && (
        <HistoryDialog
          path={`/api/voices/${encodeURIComponent(sample.id)}`}
          name={sample.name}
          current={{ name: sample.name, description: sample.description }}
          names={{ name: t.name, description: texts.personas.description }}
          onRestored={() => void library.refresh()}
          onClose={() => setHistoryOpen(false)}
        />
      )}
      {isRenaming && <RenameDialog library={library} sample={sample} onClose={() => setRenaming(false)} />}
    </li>
  );
}

function listFacts({ duration_s, sample_rate_hz, format, size_bytes }: VoiceSample): string {
  return [
    duration_s === undefined ? undefined : formatClock(duration_s * 1000),
    sample_rate_hz === undefined ? undefined : `${formatNumber(sample_rate_hz / 1000)} kHz`,
    format,
    bytes(size_bytes),
  ].filter(Boolean).join(" · ");
}

function RenameDialog(
  { library, sample, onClose }: { library: VoiceLibrary; sample: VoiceSample; onClose: () => void },
) {
  const store = useStore();
  const [name, setName] = useState(sample.name);
  const t = texts.voice.library;
  const save = (event: Event) => {
    event.preventDefault();
    if (name.trim() === "") return;
    library.rename(sample.id, name.trim()).then(onClose, (thrown) => store.report(thrown));
  };
  return (
    <Dialog
      title={t.rename}
      onClose={onClose}
      actions={<Button kind="primary" type="submit" form="rename-sample">{texts.save}</Button>}
    >
      <form id="rename-sample" onSubmit={save}>
        <TextField label={t.name} value={name} maxLength={200} isRequired hasFocus onInput={setName} />
      </form>
    </Dialog>
  );
}
