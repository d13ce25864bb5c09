/** Prompt templates: texts for the composer, called by a slash and their name. */
import { useState } from "preact/hooks";
import { asApiError } from "../../api/client.ts";
import { changeTemplates } from "../../api/documents.ts";
import type { PromptTemplate } from "../../api/types.ts";
import { Button, IconButton } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { EmptyState } from "../../components/Notice.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { TEMPLATE_NAME, toTemplateSnippet } from "../../state/chat/slash_commands.ts";
import { type Store, useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** The limits of the server. */
const MAX_TEMPLATES = 50;
const MAX_TEXT_CHARS = 8_000;

/** The list, and a dialog to edit one. */
export function PromptTemplatesPage() {
  const store = useStore();
  const t = texts.promptTemplates;
  /** The one that is edited; `null` for a new one. */
  const [open, setOpen] = useState<PromptTemplate | null>();
  const templates = store.preferences.settings.value?.prompt_templates;
  const remove = (template: PromptTemplate, index: number) => {
    const undo = () =>
      void change(store, (all) => isNameTaken(all, template.name) ? [...all] : all.toSpliced(index, 0, template))
        .catch((thrown) => store.report(thrown));
    change(store, (all) => all.filter(({ name }) => name !== template.name)).then(
      () => store.toasts.show(t.removed(template.name), { action: { label: texts.undo, run: undo } }),
      (thrown) => store.report(thrown),
    );
  };
  const add = (
    <Button
      icon="plus"
      kind="primary"
      isDisabled={(templates?.length ?? 0) >= MAX_TEMPLATES}
      onClick={() => setOpen(null)}
    >
      {t.add}
    </Button>
  );
  return (
    <section>
      <h2>{t.title}</h2>
      <p class="muted">{t.intro}</p>
      {templates === undefined && <p class="muted" role="status">{texts.loading}</p>}
      {templates?.length === 0 && <EmptyState level={3} title={t.empty} text={t.emptyText}>{add}</EmptyState>}
      {templates !== undefined && templates.length > 0 && (
        <>
          <div class="actions-row">{add}</div>
          <List label={t.title}>
            {templates.map((template, index) => (
              <ListRow
                key={template.name}
                title={`/${template.name}`}
                text={toTemplateSnippet(template.text)}
                onClick={() => setOpen(template)}
                end={
                  <IconButton
                    icon="trash"
                    label={t.remove(template.name)}
                    onClick={() => remove(template, index)}
                  />
                }
              />
            ))}
          </List>
        </>
      )}
      {open !== undefined && (
        <TemplateForm
          template={open ?? undefined}
          others={templates ?? []}
          onClose={() => setOpen(undefined)}
        />
      )}
    </section>
  );
}

function TemplateForm(
  { template, others, onClose }: {
    template: PromptTemplate | undefined;
    others: readonly PromptTemplate[];
    onClose: () => void;
  },
) {
  const store = useStore();
  const t = texts.promptTemplates;
  const [name, setName] = useState(template?.name ?? "");
  const [text, setText] = useState(template?.text ?? "");
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string>();
  const isTaken = name !== template?.name && isNameTaken(others.filter((other) => other !== template), name);
  const isNamed = TEMPLATE_NAME.test(name);
  const save = async () => {
    if (!isNamed || isTaken || text.trim() === "") return;
    setBusy(true);
    setFailure(undefined);
    try {
      await change(store, (all) => {
        const at = all.findIndex((other) => other.name === template?.name);
        return at < 0 ? [...all, { name, text }] : all.with(at, { name, text });
      });
      onClose();
    } catch (thrown) {
      setFailure(asApiError(thrown).message);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={template === undefined ? t.add : t.edit}
      onClose={onClose}
      actions={
        <Button
          kind="primary"
          isBusy={isBusy}
          isDisabled={!isNamed || isTaken || text.trim() === ""}
          onClick={() => void save()}
        >
          {texts.save}
        </Button>
      }
    >
      <div class="form">
        <TextField
          label={t.name}
          value={name}
          hint={t.nameHint}
          error={isTaken ? t.nameTaken : name !== "" && !isNamed ? t.nameWrong : undefined}
          maxLength={40}
          hasFocus
          onInput={setName}
        />
        <TextField
          label={t.text}
          value={text}
          hint={t.textHint}
          error={failure}
          rows={8}
          maxLength={MAX_TEXT_CHARS}
          onInput={setText}
        />
      </div>
    </Dialog>
  );
}

function isNameTaken(templates: readonly PromptTemplate[], name: string): boolean {
  return templates.some((other) => other.name.toLocaleLowerCase() === name.toLocaleLowerCase());
}

async function change(store: Store, edit: (templates: readonly PromptTemplate[]) => PromptTemplate[]): Promise<void> {
  await changeTemplates(store.api.client, edit);
  await store.preferences.refresh();
}
