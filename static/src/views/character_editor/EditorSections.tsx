/** The parts of the editor, but for the lorebook: which fields stand where. */
import { CodeBlock } from "../../components/content/CodeBlock.tsx";
import type { CardEditor } from "../../state/characters/card_editor.ts";
import { texts } from "../../texts/texts.ts";
import { CardVoice } from "./CardVoice.tsx";
import { CardOrigin } from "./CardOrigin.tsx";
import { CardText, CardTexts, CardWords } from "./fields.tsx";
import { NotesByLanguage } from "./NotesByLanguage.tsx";

/** Who it is. */
export function IdentityPart({ editor }: { editor: CardEditor }) {
  const t = texts.editor;
  return (
    <>
      <CardText editor={editor} field="name" />
      <CardText editor={editor} field="nickname" />
      <CardText editor={editor} field="description" rows={12} />
      <CardText editor={editor} field="personality" rows={4} />
      <CardWords
        label={t.fields.tags}
        hint={t.hints.tags}
        between="commas"
        words={editor.data.value!.tags}
        onChange={(tags) => editor.set({ tags })}
      />
    </>
  );
}

/** How it speaks. */
export function VoicePart({ editor }: { editor: CardEditor }) {
  return (
    <>
      <CardText editor={editor} field="first_mes" rows={8} />
      <CardTexts editor={editor} field="alternate_greetings" />
      <CardTexts editor={editor} field="group_only_greetings" />
      <CardText editor={editor} field="mes_example" rows={10} />
      <CardVoice editor={editor} />
    </>
  );
}

/** Where it is, and what the model is told. */
export function ScenePart({ editor }: { editor: CardEditor }) {
  return (
    <>
      <CardText editor={editor} field="scenario" rows={6} />
      <CardText editor={editor} field="system_prompt" rows={6} />
      <CardText editor={editor} field="post_history_instructions" rows={5} />
    </>
  );
}

/** Who made it, and what other programs keep in it. */
export function AdvancedPart({ editor }: { editor: CardEditor }) {
  const { extensions } = editor.data.value!;
  const t = texts.editor;
  return (
    <>
      <CardText editor={editor} field="creator" />
      <CardText editor={editor} field="character_version" />
      <CardText editor={editor} field="creator_notes" rows={8} isCounted={false} />
      <NotesByLanguage editor={editor} />
      <CardOrigin data={editor.data.value!} />
      <section>
        <h2>{t.fields.extensions}</h2>
        <p class="hint">{t.hints.extensions}</p>
        <CodeBlock language="json" text={JSON.stringify(extensions, null, 2)} isOpen={false} />
      </section>
    </>
  );
}
