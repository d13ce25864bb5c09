/** The documents of a character. They aren't part of its card, so they are saved separately, at once. */
import { useRef } from "preact/hooks";
import type { DocumentUse } from "../../api/types.ts";
import type { CardEditor } from "../../state/characters/card_editor.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { AlwaysAtHand } from "../documents/AlwaysAtHand.tsx";

/** Lists, adds and removes them. */
export function DocumentsSection({ editor }: { editor: CardEditor }) {
  const store = useStore();
  const saving = useRef<Promise<void>>(Promise.resolve());
  // One after the other: each change is made to what is stored then.
  const save = (change: (uses: readonly DocumentUse[]) => DocumentUse[]) => {
    saving.current = saving.current.then(() => editor.changeDocuments(change)).catch((thrown) => store.report(thrown));
  };
  return (
    <AlwaysAtHand
      uses={editor.whole.value?.documents ?? []}
      hint={texts.documents.atHandCharacter}
      onChange={save}
    />
  );
}
