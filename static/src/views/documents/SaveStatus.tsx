/** How saving stands, and the steps back and on. */
import { IconButton } from "../../components/Button.tsx";
import type { VersionedEditor } from "../../state/documents/versioned_editor.ts";
import { texts } from "../../texts/texts.ts";

/** A word and two buttons. */
export function SaveState<Whole, Data extends object>({ editor }: { editor: VersionedEditor<Whole, Data> }) {
  const t = texts.editor;
  return (
    <>
      <span class="save-state muted" role="status">{t.states[editor.state.value]}</span>
      <IconButton icon="restore" label={t.undo} isDisabled={!editor.canUndo.value} onClick={() => editor.undo()} />
      <IconButton icon="redo" label={t.redo} isDisabled={!editor.canRedo.value} onClick={() => editor.redo()} />
    </>
  );
}
