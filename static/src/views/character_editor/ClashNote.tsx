/** Says that somebody else saved the card meanwhile, and which fields differ. */
import { Button } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import type { CardEditor } from "../../state/card_editor.ts";
import { texts } from "../../texts/texts.ts";

/** Mine or theirs; until then neither is lost. */
export function ClashNote({ editor }: { editor: CardEditor }) {
  const t = texts.editor;
  const mine = editor.data.value;
  const theirs = editor.clash.value?.character.card.data;
  if (!mine || !theirs) return null;
  const fields = [...new Set([...Object.keys(mine), ...Object.keys(theirs)])]
    .filter((field) => JSON.stringify(mine[field]) !== JSON.stringify(theirs[field]))
    .map((field) => Object.hasOwn(t.fields, field) ? t.fields[field as keyof typeof t.fields] : field);
  return (
    <Notice
      tone="warning"
      title={t.clash}
      actions={
        <>
          <Button kind="primary" onClick={() => void editor.settle("mine")}>{t.keepMine}</Button>
          <Button onClick={() => void editor.settle("theirs")}>{t.takeTheirs}</Button>
        </>
      }
    >
      {t.clashText(fields.join(", "))}
    </Notice>
  );
}
