/** Prompt templates: texts for the composer, called by a slash and their name. */
import { useEffect, useState } from "preact/hooks";
import { asApiError } from "../../api/client.ts";
import { changeTemplates, listQuickReplySets, quickReplySetPath } from "../../api/documents.ts";
import type { PromptTemplate, TemplateButton } from "../../api/types.ts";
import { downloadFile } from "../../components/ApiFile.tsx";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, IconButton } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select, Switch } from "../../components/forms/inputs.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { EmptyState } from "../../components/Notice.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { Menu } from "../../components/overlays/Menu.tsx";
import { isScriptCommand, TEMPLATE_NAME, toTemplateSnippet } from "../../state/chat/slash_commands.ts";
import { type Store, useStore } from "../../state/store.ts";
import { getQuickReplyTexts } from "../../texts/quick_reply_texts.ts";
import { texts } from "../../texts/texts.ts";
import { CharacterPicker } from "../CharacterPicker.tsx";

/** The limits of the server. */
const MAX_TEMPLATES = 200;
const MAX_TEXT_CHARS = 8_000;
const MAX_LABEL_CHARS = 60;

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
          <div class="actions-row">
            {add}
            <SaveSets templates={templates} />
          </div>
          <List label={t.title}>
            {templates.map((template, index) => (
              <ListRow
                key={template.name}
                title={`/${template.name}`}
                text={describe(template)}
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

/** Saves the templates for SillyTavern: one file for each set. */
function SaveSets({ templates }: { templates: readonly PromptTemplate[] }) {
  const store = useStore();
  const [names, setNames] = useState<string[]>([]);
  const { saveSet, saveSets } = getQuickReplyTexts();
  useEffect(() => {
    let isHere = true;
    listQuickReplySets(store.api.client).then(
      (found) => isHere && setNames(found),
      (thrown) => isHere && store.report(thrown),
    );
    return () => {
      isHere = false;
    };
  }, [templates]);
  const items = names.map((name) => ({
    label: saveSet(name),
    onSelect: () => void downloadFile(store, quickReplySetPath(name)),
  }));
  return <Menu label={saveSets} icon="export" items={items} isDisabled={items.length === 0} />;
}

function describe(template: PromptTemplate): string {
  const { isScript } = getQuickReplyTexts();
  const snippet = toTemplateSnippet(template.text);
  return isScriptCommand(template) ? `${isScript}: ${snippet}` : snippet;
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
  const [button, setButton] = useState(template?.button);
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string>();
  const draft = useFormDraft(`template:${template?.name ?? ""}`);
  const isTaken = name !== template?.name && isNameTaken(others.filter((other) => other !== template), name);
  const isNamed = TEMPLATE_NAME.test(name);
  const isComplete = isNamed && !isTaken && text.trim() !== "" && button?.label.trim() !== "";
  const save = async () => {
    if (!isComplete) return;
    setBusy(true);
    setFailure(undefined);
    try {
      await change(store, (all) => {
        const at = all.findIndex((other) => other.name === template?.name);
        const { button: _, ...kept } = template ?? {};
        const changed: PromptTemplate = { ...kept, name, text, ...(button && { button }) };
        return at < 0 ? [...all, changed] : all.with(at, changed);
      });
      draft.clear();
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
          isDisabled={!isComplete}
          onClick={() => void save()}
        >
          {texts.save}
        </Button>
      }
    >
      <div class="form">
        <Drafted draft={draft}>
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
          <Switch
            label={getQuickReplyTexts().showButton}
            isOn={button !== undefined}
            onChange={(isOn) =>
              setButton(
                isOn
                  ? template?.button ?? { label: name.slice(0, MAX_LABEL_CHARS), action: "insert_after" }
                  : undefined,
              )}
          />
          {button && <ButtonFields button={button} onChange={setButton} />}
        </Drafted>
      </div>
    </Dialog>
  );
}

const ACTIONS = ["insert_after", "insert_before", "send", "send_after", "send_before"] as const;

function ButtonFields({ button, onChange }: { button: TemplateButton; onChange: (button: TemplateButton) => void }) {
  const t = getQuickReplyTexts();
  const { conversation_ids: chats = [], character_ids: characters = [] } = button;
  return (
    <>
      <TextField
        label={t.label}
        value={button.label}
        error={button.label.trim() === "" ? t.labelNeeded : undefined}
        maxLength={MAX_LABEL_CHARS}
        onInput={(label) => onChange({ ...button, label })}
      />
      <Select
        label={t.action}
        hint={t.actionHint}
        value={button.action}
        options={ACTIONS.map((value) => ({ value, name: t.actions[value] }))}
        onChange={(action) => onChange({ ...button, action })}
      />
      <CharacterPicker
        legend={t.shownIn}
        ids={characters}
        onChange={(ids) => onChange({ ...button, character_ids: ids.length > 0 ? ids : undefined })}
      />
      <p class="hint">{chats.length > 0 ? t.onlyThere(chats.length) : t.everywhere}</p>
      {chats.length > 0 && (
        <Button onClick={() => onChange({ label: button.label, action: button.action })}>{t.showEverywhere}</Button>
      )}
    </>
  );
}

function isNameTaken(templates: readonly PromptTemplate[], name: string): boolean {
  return templates.some((other) => other.name.toLocaleLowerCase() === name.toLocaleLowerCase());
}

async function change(store: Store, edit: (templates: readonly PromptTemplate[]) => PromptTemplate[]): Promise<void> {
  await changeTemplates(store.api.client, edit);
  await store.preferences.refresh();
}
