/** The frame of an editor within the settings: back link, save status, failures, conflicts. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, IconButton, LinkButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote, Notice } from "../../components/Notice.tsx";
import type { FormDraft } from "../../state/app/form_draft.ts";
import type { VersionedEditor } from "../../state/documents/versioned_editor.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** The labels of such an editor. */
export interface EditorLabels {
  back: string;
  missing: string;
  oneFailed: string;
  saveFailed: string;
  clash: string;
  fields: Readonly<Record<string, string>>;
}

/** The frame; the form is shown once the document is loaded. */
export function EditorFrame<Whole, Data extends { name: string }>(
  { editor, address, labels, isReadOnly = false, children }: {
    editor: VersionedEditor<Whole, Data>;
    /** Path of the list. */
    address: string;
    labels: EditorLabels;
    isReadOnly?: boolean;
    children: ComponentChildren;
  },
) {
  const draft = useEditor(editor);
  const load = editor.load.value;
  const error = editor.error.value;
  if (load.kind === "loading") return <p class="muted" role="status">{texts.loading}</p>;
  if (load.kind === "missing") {
    return (
      <EmptyState title={labels.missing}>
        <LinkButton href={address}>{labels.back}</LinkButton>
      </EmptyState>
    );
  }
  if (load.kind === "failed") {
    return <ErrorNote title={labels.oneFailed} error={load.error} onRetry={() => void editor.open()} />;
  }
  return (
    <section class="document-editor">
      <a class="back-link" href={address}>{labels.back}</a>
      <div class="document-head">
        <h2>{editor.data.value!.name}</h2>
        {!isReadOnly && <SaveStatus editor={editor} />}
      </div>
      <ConflictNotice
        editor={editor}
        title={labels.clash}
        differences={(ownVersion, theirs) => listDifferingFields(ownVersion, theirs, labels.fields)}
      />
      {error && <ErrorNote title={labels.saveFailed} error={error} onRetry={() => void editor.save()} />}
      <Drafted draft={draft}>{children}</Drafted>
    </section>
  );
}

/** Asks which version to keep. Both are kept until then. Renders nothing without a conflict. */
export function ConflictNotice<Whole, Data extends object>(
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

/** The save status, Undo and Redo. */
export function SaveStatus<Whole, Data extends object>({ editor }: { editor: VersionedEditor<Whole, Data> }) {
  const t = texts.editor;
  return (
    <>
      <span class="save-state muted" role="status">{t.states[editor.state.value]}</span>
      <IconButton icon="restore" label={t.undo} isDisabled={!editor.canUndo.value} onClick={() => editor.undo()} />
      <IconButton icon="redo" label={t.redo} isDisabled={!editor.canRedo.value} onClick={() => editor.redo()} />
    </>
  );
}

/** Lists the fields in which two versions differ. @param names Labels of fields; others use their own name. */
export function listDifferingFields(mine: object, theirs: object, names: Readonly<Record<string, string>>): string[] {
  const [one, other] = [mine as Record<string, unknown>, theirs as Record<string, unknown>];
  return [...new Set([...Object.keys(one), ...Object.keys(other)])]
    .filter((field) => JSON.stringify(one[field]) !== JSON.stringify(other[field]))
    .map((field) => Object.hasOwn(names, field) ? names[field]! : field);
}

/** Loads the document and follows its changes while the view is shown. Returns the draft of what isn't saved. */
export function useEditor<Whole, Data extends object>(editor: VersionedEditor<Whole, Data>): FormDraft {
  const store = useStore();
  const draft = useFormDraft(`${editor.kind}:${editor.id}`);
  useEffect(() => {
    void editor.open();
    const end = store.listen((event) => editor.onChange(event));
    // The browser asks before it discards unsaved changes; navigation within the page saves them.
    const onLeave = (event: Event) => {
      if (!editor.isDirty) return;
      void editor.save();
      event.preventDefault();
    };
    globalThis.addEventListener("beforeunload", onLeave);
    let before = editor.state.peek();
    const endDraft = editor.state.subscribe((state) => {
      if (state === "saved" && before !== "saved") draft.settle();
      before = state;
    });
    return () => {
      end();
      globalThis.removeEventListener("beforeunload", onLeave);
      void editor.save().finally(endDraft);
    };
  }, [editor]);
  return draft;
}
