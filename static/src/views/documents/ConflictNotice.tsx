/** Says that somebody else saved the document meanwhile, and what differs. */
import { Button } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import type { VersionedEditor } from "../../state/documents/versioned_editor.ts";
import { texts } from "../../texts/texts.ts";

/** Mine or theirs; until then neither is lost. Nothing while there is no clash. */
export function ClashNote<Whole, Data extends object>(
  { editor, title, differences }: {
    editor: VersionedEditor<Whole, Data>;
    title: string;
    differences: (mine: Data, theirs: Data) => string[];
  },
) {
  const t = texts.editor;
  const mine = editor.data.value;
  const theirs = editor.clash.value?.data;
  if (!mine || !theirs) return null;
  return (
    <Notice
      tone="warning"
      title={title}
      actions={
        <>
          <Button kind="primary" onClick={() => void editor.settle("mine")}>{t.keepMine}</Button>
          <Button onClick={() => void editor.settle("theirs")}>{t.takeTheirs}</Button>
        </>
      }
    >
      {t.clashText(differences(mine, theirs).join(", "))}
    </Notice>
  );
}
