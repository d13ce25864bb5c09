/** How far the model is that writes the card, and how it ended. */
import { Button } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import { Notice } from "../../components/Notice.tsx";
import type { Creation } from "../../state/characters/character_generation.ts";
import { texts } from "../../texts/texts.ts";

/** Nothing once all is well. */
export function WritingNote({ creation }: { creation: Creation }) {
  const t = texts.creator;
  const { fields } = texts.editor;
  const current = creation.current.value ?? "";
  if (creation.isRunning) {
    const field = Object.hasOwn(fields, current) ? fields[current as keyof typeof fields] : "";
    return (
      <div class="creator-writing">
        <p role="status">
          <span class="pulse" aria-hidden="true" /> {field === "" ? t.writing : t.writingField(field)}
        </p>
        <Button icon="stop" onClick={() => creation.stop()}>{t.stop}</Button>
      </div>
    );
  }
  const error = creation.error.value;
  if (error) return <ErrorNote title={t.cutOff} error={error} />;
  if (creation.isCut.value) return <Notice tone="warning" title={t.tooLong}>{t.tooLongText}</Notice>;
  return null;
}
