/** What stands around an editor within the settings: the way back, how saving stands, failures and clashes. */
import type { ComponentChildren } from "preact";
import { LinkButton } from "../../components/Button.tsx";
import { EmptyState } from "../../components/EmptyState.tsx";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import type { VersionedEditor } from "../../state/documents/versioned_editor.ts";
import { texts } from "../../texts/texts.ts";
import { ClashNote } from "./ConflictNotice.tsx";
import { differingFields } from "./differing_fields.ts";
import { SaveState } from "./SaveStatus.tsx";
import { useEditing } from "./use_editor.ts";

/** What every such editor says. */
export interface EditorWords {
  back: string;
  missing: string;
  oneFailed: string;
  saveFailed: string;
  clash: string;
  fields: Readonly<Record<string, string>>;
}

/** The frame; what is edited stands inside once it is read. */
export function EditorFrame<Whole, Data extends { name: string }>(
  { editor, address, words, isReadOnly = false, children }: {
    editor: VersionedEditor<Whole, Data>;
    /** Of the list. */
    address: string;
    words: EditorWords;
    isReadOnly?: boolean;
    children: ComponentChildren;
  },
) {
  useEditing(editor);
  const load = editor.load.value;
  const error = editor.error.value;
  if (load.kind === "loading") return <p class="muted" role="status">{texts.loading}</p>;
  if (load.kind === "missing") {
    return (
      <EmptyState title={words.missing}>
        <LinkButton href={address}>{words.back}</LinkButton>
      </EmptyState>
    );
  }
  if (load.kind === "failed") {
    return <ErrorNote title={words.oneFailed} error={load.error} onRetry={() => void editor.open()} />;
  }
  return (
    <section class="document-editor">
      <a class="back-link" href={address}>{words.back}</a>
      <div class="document-head">
        <h2>{editor.data.value!.name}</h2>
        {!isReadOnly && <SaveState editor={editor} />}
      </div>
      <ClashNote
        editor={editor}
        title={words.clash}
        differences={(mine, theirs) => differingFields(mine, theirs, words.fields)}
      />
      {error && <ErrorNote title={words.saveFailed} error={error} onRetry={() => void editor.save()} />}
      {children}
    </section>
  );
}
